// Token ids as they lie in files: little-endian integers of one of three types. Nothing here knows of files or shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "data/tokens.h"

namespace quell::ids {

using Bytes = std::span<const std::byte>;

int64_t width(TokenType type);  // bytes of one id; not for `automatic`
inline int64_t count(TokenType type, Bytes bytes) { return static_cast<int64_t>(bytes.size()) / width(type); }

// Ids [begin, begin + count) of `bytes`, which must hold them. Returns the largest of them, or -1 where one is
// negative.
int64_t copy(TokenType type, Bytes bytes, int64_t begin, int64_t count, int64_t* out);
int64_t largest(TokenType type, Bytes bytes);  // -1 where one is negative, or for no bytes
// The first id that is negative or at or above `bound`: its index, or -1.
int64_t first_outside(TokenType type, Bytes bytes, int64_t bound);
int64_t at(TokenType type, Bytes bytes, int64_t index);

}  // namespace quell::ids
