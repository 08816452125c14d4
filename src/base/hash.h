// xxHash: XXH3 of bytes, as numbers and as the 16 (64 bits) or 32 (128 bits) lower-case hexadecimal digits that files
// store.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace quell {

uint64_t xxh3_64(std::string_view bytes, uint64_t seed = 0);
std::string xxh3_64_hex(std::string_view bytes);
std::string xxh3_128_hex(std::string_view bytes);

}  // namespace quell
