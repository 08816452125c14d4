// xxHash: XXH3 of bytes, as numbers and as the 16 (64 bits) or 32 (128 bits) lower-case hexadecimal digits that files
// store.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace quell {

uint64_t xxh3_64(std::string_view bytes, uint64_t seed = 0);
std::string xxh3_64_hex(std::string_view bytes);
std::string xxh3_128_hex(std::string_view bytes);

// The same of bytes that come in pieces.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;
  void add(std::string_view bytes);
  std::string hex_64() const;
  std::string hex_128() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quell
