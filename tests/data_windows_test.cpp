// The order of windows: laws that hold for every length of text.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "data/windows.h"

using namespace quell;

namespace {
std::vector<int64_t> epoch_begins(const Windows& windows, int64_t epoch) {
  std::vector<int64_t> begins;
  for (int64_t i = 0; i < windows.count(); ++i) begins.push_back(windows.begin(epoch * windows.count() + i));
  return begins;
}
}  // namespace

TEST_CASE("an epoch sees every window once, each within the text, side by side", "[unit]") {
  for (int64_t context : {1, 2, 7, 16}) {
    for (int64_t tokens = context + 1; tokens < 6 * context + 3; ++tokens) {
      const Windows windows(tokens, context, 5);
      for (int64_t epoch : {0, 1, 2, 1000000}) {
        auto begins = epoch_begins(windows, epoch);
        std::sort(begins.begin(), begins.end());
        CAPTURE(context, tokens, epoch);
        REQUIRE(begins.front() >= 0);
        REQUIRE(begins.front() < context);
        for (size_t i = 1; i < begins.size(); ++i) REQUIRE(begins[i] == begins[i - 1] + context);
        REQUIRE(begins.back() + context + 1 <= tokens);
        // All of the text but less than a window at each end.
        REQUIRE(tokens - (begins.back() + context) <= std::max(context, tokens - context));
      }
    }
  }
}

TEST_CASE("another epoch or seed has another order and another offset", "[unit]") {
  const Windows windows(10000, 64, 1), other(10000, 64, 2);
  const auto first = epoch_begins(windows, 0), second = epoch_begins(windows, 1);
  CHECK(first == epoch_begins(Windows(10000, 64, 1), 0));
  CHECK(first != second);
  CHECK(first != epoch_begins(other, 0));
  std::set<int64_t> offsets;
  std::set<int64_t> first_windows;
  for (int64_t epoch = 0; epoch < 1000; ++epoch) {
    offsets.insert(windows.begin(epoch * windows.count()) % 64);
    first_windows.insert(windows.begin(epoch * windows.count()) / 64);
  }
  CHECK(offsets.size() == 64);  // each of 64 values is missed with probability (63/64)^1000 = 1e-7
  CHECK(static_cast<int64_t>(first_windows.size()) == windows.count());
}

TEST_CASE("the order within an epoch is not the order of the text", "[unit]") {
  const Windows windows(100001, 10, 3);
  const auto begins = epoch_begins(windows, 0);
  int ascending = 0;
  for (size_t i = 1; i < begins.size(); ++i) ascending += begins[i] > begins[i - 1];
  const auto pairs = static_cast<double>(begins.size() - 1);
  // The number of ascents of a random order of n has mean n/2 and variance n/12.
  CHECK(std::abs(ascending - pairs / 2) < 5 * std::sqrt(pairs / 12));
}

TEST_CASE("seeking to a far sample takes no time", "[unit]") {
  const Windows windows(int64_t{1} << 45, 1024, 3);
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t begin = windows.begin((int64_t{1} << 55) + i);
    REQUIRE((begin >= 0 && begin + 1025 <= int64_t{1} << 45));
  }
}

TEST_CASE("a text of one window is seen whole in every epoch, and a shorter one is a bug", "[unit]") {
  CHECK(Windows(65, 64, 0).count() == 1);
  CHECK(Windows(65, 64, 0).begin(7) == 0);
  CHECK_THROWS_AS(Windows(64, 64, 0), Bug);
}

TEST_CASE("fixed windows are evenly spaced from the first token to the last", "[unit]") {
  for (int64_t tokens : {65, 100, 129, 1000, 99999}) {
    const int64_t all = fixed_window_count(tokens, 64);
    for (int64_t count : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{40}, all}) {
      if (count > all) continue;
      CAPTURE(tokens, count);
      CHECK(fixed_window(0, count, tokens, 64) == 0);
      if (count > 1) CHECK(fixed_window(count - 1, count, tokens, 64) + 65 == tokens);
      std::set<int64_t> steps;
      for (int64_t i = 1; i < count; ++i) {
        steps.insert(fixed_window(i, count, tokens, 64) - fixed_window(i - 1, count, tokens, 64));
      }
      if (!steps.empty()) CHECK(*steps.rbegin() - *steps.begin() <= 1);
      if (!steps.empty()) CHECK(*steps.begin() >= 64);
    }
  }
  CHECK(fixed_window_count(64, 64) == 0);
  CHECK(fixed_window_count(65, 64) == 1);
  CHECK(fixed_window(999999, 1000000, int64_t{1} << 50, 64) + 65 == int64_t{1} << 50);
}
