#include "base/hash.h"

#include <xxhash.h>

namespace quell {
namespace {

void put_hex(std::string& out, uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(value >> shift) & 15];
}

}  // namespace

uint64_t xxh3_64(std::string_view bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

std::string xxh3_64_hex(std::string_view bytes) {
  std::string out;
  put_hex(out, xxh3_64(bytes));
  return out;
}

std::string xxh3_128_hex(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  std::string out;
  put_hex(out, hash.high64);
  put_hex(out, hash.low64);
  return out;
}

}  // namespace quell
