#include "data/ids.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace quell::ids {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian and read in place");

// Calls work(const Integer* ids, int64_t count) with the type of the file. Files are mapped from their beginning, so
// ids are aligned.
template <class Work>
auto with_ids(TokenType type, Bytes bytes, const Work& work) {
  switch (type) {
    case TokenType::uint16:
      return work(reinterpret_cast<const uint16_t*>(bytes.data()), count(type, bytes));
    case TokenType::uint32:
      return work(reinterpret_cast<const uint32_t*>(bytes.data()), count(type, bytes));
    case TokenType::int32:
      return work(reinterpret_cast<const int32_t*>(bytes.data()), count(type, bytes));
    case TokenType::automatic:
      break;
  }
  throw Bug("ids: the type of a token file is not known");
}

// Loops that the compiler turns into vector code: whole files are read by these.
template <class Integer>
int64_t largest_of(const Integer* ids, int64_t count) {
  Integer low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, ids[i]);
    high = std::max(high, ids[i]);
  }
  return low < 0 || count == 0 ? -1 : static_cast<int64_t>(high);
}

}  // namespace

int64_t width(TokenType type) {
  require(type != TokenType::automatic, "ids: the type of a token file is not known");
  return type == TokenType::uint16 ? 2 : 4;
}

int64_t copy(TokenType type, Bytes bytes, int64_t begin, int64_t wanted, int64_t* out) {
  return with_ids(type, bytes, [&](const auto* ids, int64_t) {
    std::copy(ids + begin, ids + begin + wanted, out);
    return largest_of(ids + begin, wanted);
  });
}

int64_t largest(TokenType type, Bytes bytes) {
  return with_ids(type, bytes, [](const auto* ids, int64_t count) { return largest_of(ids, count); });
}

int64_t first_outside(TokenType type, Bytes bytes, int64_t bound) {
  return with_ids(type, bytes, [&](const auto* ids, int64_t count) {
    constexpr int64_t part = 4096;
    for (int64_t begin = 0; begin < count; begin += part) {
      const int64_t end = std::min(begin + part, count), largest = largest_of(ids + begin, end - begin);
      if (largest >= 0 && largest < bound) continue;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t id = ids[i];
        if (id < 0 || id >= bound) return i;
      }
    }
    return int64_t{-1};
  });
}

int64_t at(TokenType type, Bytes bytes, int64_t index) {
  return with_ids(type, bytes, [&](const auto* ids, int64_t) { return static_cast<int64_t>(ids[index]); });
}

}  // namespace quell::ids
