#include "base/random.h"

#include <bit>
#include <random>

#include "base/error.h"
#include "base/hash.h"

namespace quell {
namespace {

constexpr uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
constexpr uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }
constexpr uint64_t pair(uint32_t lower, uint32_t upper) { return uint64_t{upper} << 32 | lower; }

// Streams of key_of: far from the small numbers that callers of philox() use.
constexpr uint64_t stream_of_names = ~uint64_t{0};
constexpr uint64_t stream_of_numbers = ~uint64_t{1};

// One pass over the 2 * half_bits wide domain. Eight rounds: four make a pseudo-random permutation of a large domain
// (Luby and Rackoff, 1988), small ones need more.
uint64_t feistel(uint64_t index, int half_bits, uint64_t key) {
  const uint64_t mask = (uint64_t{1} << half_bits) - 1;
  uint64_t left = index >> half_bits, right = index & mask;
  for (uint64_t round = 0; round < 8; ++round) {
    const uint64_t mixed = left ^ (philox(key, right, round)[0] & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits | right;
}

}  // namespace

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter, uint64_t stream) {
  std::array<uint32_t, 4> x{low(counter), high(counter), low(stream), high(stream)};
  uint32_t key0 = low(key), key1 = high(key);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * x[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * x[2];
    x = {high(product1) ^ x[1] ^ key0, low(product1), high(product0) ^ x[3] ^ key1, low(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return x;
}

uint64_t key_of(uint64_t seed, std::string_view name) {
  const auto bits = philox(seed, xxh3_64(name), stream_of_names);
  return pair(bits[0], bits[1]);
}

uint64_t key_of(uint64_t seed, uint64_t number) {
  const auto bits = philox(seed, number, stream_of_numbers);
  return pair(bits[0], bits[1]);
}

double unit_double(uint64_t key, uint64_t counter) {
  const auto bits = philox(key, counter);
  return static_cast<double>(pair(bits[0], bits[1]) >> 11) * 0x1p-53;
}

std::string unique_id() {
  std::random_device system;
  std::string digits;
  for (int word = 0; word < 4; ++word) {
    const uint32_t bits = system();
    for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(bits >> shift) & 15];
  }
  return digits;
}

// The domain is less than four times `size`, so the walk takes four passes on average at most; it ends because a
// permutation returns to where it began.
uint64_t permuted(uint64_t index, uint64_t size, uint64_t key) {
  require(index < size, "permuted: index outside the range");
  const int half_bits = (std::bit_width(size - 1) + 1) / 2;
  if (half_bits == 0) return 0;
  do {
    index = feistel(index, half_bits, key);
  } while (index >= size);
  return index;
}

}  // namespace quell
