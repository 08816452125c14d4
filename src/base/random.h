// Counter-based random bits (Philox 4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): the
// bits are a function of (key, counter), so any number can be drawn by anyone, in any order, without a state to save. A
// permutation of [0, n) is computed the same way (a Feistel network with cycle walking), so that seeking in a shuffled
// data set is O(1).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace quell {

// 128 bits for one counter value. Equal to the published known-answer vectors with counter = {low, high, 0, 0} words of
// `counter` and `stream`, and key = the two words of `key`.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter, uint64_t stream = 0);

// A key from a seed and a name (or a second number), by which draws of different kinds never meet.
uint64_t key_of(uint64_t seed, std::string_view name);
uint64_t key_of(uint64_t seed, uint64_t number);

// [0, 1): 24 bits as float steps, 53 bits as double steps.
inline float unit_float(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
double unit_double(uint64_t key, uint64_t counter);

// 32 hexadecimal digits that nobody else has, from the system: for names, never for training.
std::string unique_id();

// A bijection of [0, size) chosen by `key`; `index` < size.
uint64_t permuted(uint64_t index, uint64_t size, uint64_t key);

}  // namespace quell
