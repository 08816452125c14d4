// XXH3 against values of another binding of the reference library (Python's xxhash).
#include <catch2/catch.hpp>
#include <string>

#include "base/hash.h"

using namespace quell;

TEST_CASE("hashes equal those that others compute", "[unit]") {
  CHECK(xxh3_64_hex("") == "2d06800538d394c2");
  CHECK(xxh3_128_hex("") == "99aa06d3014798d86001c324468d497f");
  CHECK(xxh3_64("") == 0x2d06800538d394c2);
  std::string bytes(1000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7);
  CHECK(xxh3_64_hex(bytes) == "10ad30264426c830");
  CHECK(xxh3_128_hex(bytes) == "abee229cdadad76d10ad30264426c830");
  CHECK(xxh3_64(bytes, 1) != xxh3_64(bytes));
}

TEST_CASE("the hashes of bytes that come in pieces are those of the whole, at both widths", "[unit]") {
  for (const size_t size : {0, 1, 16, 17, 128, 129, 240, 241, 1000, 100'000}) {  // XXH3 has another way for each range of lengths
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 255);
    Xxh3 hash;
    for (size_t at = 0; at < size; at += 77) hash.add(std::string_view(bytes).substr(at, 77));
    CHECK(hash.hex_64() == xxh3_64_hex(bytes));
    CHECK(hash.hex_128() == xxh3_128_hex(bytes));
  }
}
