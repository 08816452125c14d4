// Philox against its published vectors, keys, and the computed permutation.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"

using namespace quell;

namespace {
using Bits = std::array<uint32_t, 4>;

std::vector<uint64_t> whole_permutation(uint64_t size, uint64_t key) {
  std::vector<uint64_t> values(size);
  for (uint64_t i = 0; i < size; ++i) values[i] = permuted(i, size, key);
  return values;
}
}  // namespace

TEST_CASE("philox gives the known answers of Random123", "[unit]") {
  CHECK(philox(0, 0, 0) == Bits{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~0ull, ~0ull, ~0ull) == Bits{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e) ==
        Bits{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a key differs by seed, by name, by number, and between names and numbers", "[unit]") {
  std::set<uint64_t> keys;
  size_t made = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t number = 0; number < 20; ++number) {
      keys.insert(key_of(seed, number));
      keys.insert(key_of(seed, "unit" + std::to_string(number)));
      made += 2;
    }
  }
  CHECK(keys.size() == made);
  CHECK(key_of(1, "weights") == key_of(1, std::string("weights")));
  CHECK(key_of(1, "weights") != key_of(1, xxh3_64("weights")));
}

TEST_CASE("keys and orders never change: runs that were begun depend on them", "[unit]") {
  CHECK(key_of(1, "weights") == 0xc2fd649df706436d);
  CHECK(key_of(1, uint64_t{2}) == 0x036b266ce15b2a13);
  std::vector<uint64_t> order;
  for (uint64_t i = 0; i < 8; ++i) order.push_back(permuted(i, 1000, 7));
  CHECK(order == std::vector<uint64_t>{56, 838, 932, 242, 418, 223, 15, 305});
}

TEST_CASE("unit numbers lie in [0, 1) and have the moments of a uniform draw", "[unit]") {
  CHECK(unit_float(0) == 0.0f);
  CHECK(unit_float(~0u) < 1.0f);
  const int count = 100000;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const double u = unit_double(3, i);
    REQUIRE((u >= 0 && u < 1));
    sum += u;
    squares += u * u;
  }
  // Five standard errors of a mean over `count` draws: sqrt(1/12) and sqrt(4/45) are the deviations of u and u^2.
  CHECK(std::abs(sum / count - 0.5) < 5 * std::sqrt(1.0 / 12 / count));
  CHECK(std::abs(squares / count - 1.0 / 3) < 5 * std::sqrt(4.0 / 45 / count));
}

TEST_CASE("the permutation is a bijection of every size from 1 to 300", "[unit]") {
  for (uint64_t size = 1; size <= 300; ++size) {
    std::vector<bool> hit(size, false);
    for (uint64_t value : whole_permutation(size, size * 31)) {
      REQUIRE(value < size);
      REQUIRE_FALSE(hit[value]);
      hit[value] = true;
    }
  }
}

TEST_CASE("the permutation is a bijection of large sizes too", "[unit]") {
  for (uint64_t size : {uint64_t{65536}, uint64_t{65537}, uint64_t{100003}}) {
    std::vector<bool> hit(size, false);
    for (uint64_t value : whole_permutation(size, 5)) {
      REQUIRE(value < size);
      REQUIRE_FALSE(hit[value]);
      hit[value] = true;
    }
  }
  // Too large to walk whole: no two of a sample meet, and the values are spread over all of the range.
  for (uint64_t size : {uint64_t{1} << 40, (uint64_t{1} << 40) + 1, ~uint64_t{0}}) {
    std::set<uint64_t> seen;
    std::array<int, 16> parts{};
    for (uint64_t i = 0; i < 20000; ++i) {
      const uint64_t value = permuted(i, size, 9);
      REQUIRE(value < size);
      REQUIRE(seen.insert(value).second);
      ++parts[static_cast<size_t>(static_cast<double>(value) / static_cast<double>(size) * 16)];
    }
    for (int part : parts) CHECK(std::abs(part - 1250) < 5 * 35);  // five deviations of a count of 1250
  }
}

TEST_CASE("the permutation depends on its key and leaves about one element in its place", "[unit]") {
  CHECK(whole_permutation(300, 1) == whole_permutation(300, 1));
  CHECK(whole_permutation(300, 1) != whole_permutation(300, 2));
  int in_place = 0;
  for (uint64_t key = 0; key < 400; ++key) {
    const auto values = whole_permutation(100, key);
    for (uint64_t i = 0; i < 100; ++i) in_place += values[i] == i;
  }
  CHECK(std::abs(in_place - 400) < 5 * 20);  // the number of fixed points has mean 1 and variance 1
}

TEST_CASE("every order of four elements occurs about equally often over the keys", "[unit]") {
  std::map<std::vector<uint64_t>, int> orders;
  for (uint64_t key = 0; key < 24000; ++key) ++orders[whole_permutation(4, key)];
  CHECK(orders.size() == 24);
  for (const auto& [order, times] : orders) CHECK(std::abs(times - 1000) < 5 * 31);  // five deviations
}

TEST_CASE("an index outside the permutation's range is a bug", "[unit]") { CHECK_THROWS_AS(permuted(3, 3, 0), Bug); }
