// Health sums to vectors and back to means, for one rank and as several ranks would combine them.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "stability/health.h"
#include "support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;
using Numbers = std::vector<double>;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

at::Tensor floats(const std::vector<float>& values) { return at::tensor(values, at::kFloat); }

// Layer 0 measured in full, layer 1 not at all, layer 2 in part; two query heads, one key/value head.
HealthSums sums_of(float offset) {
  HealthSums sums;
  sums.layers.resize(3);
  LayerHealth& full = sums.layers[0];
  full.bound_H = floats({3 + offset, 5 - offset});
  full.logit_max_H = floats({2 + offset, 4 - offset});
  full.entropy_H = floats({8 + offset, 16});
  full.entropy_relative_H = floats({4, 2 + offset});
  full.entropy_rows = 8;
  full.q_square_H = floats({36, 64 + offset});
  full.k_square_G = floats({100});
  full.q_count = 4;
  full.k_count = 4;
  sums.layers[2].k_square_G = floats({18 + offset});
  sums.layers[2].k_count = 2;
  return sums;
}

}  // namespace

TEST_CASE("a report holds maxima and means of what was measured, and nothing of what was not", "[unit]") {
  const HealthSums sums = sums_of(0);
  const HealthReport report = unpack(sums, pack(sums));
  REQUIRE(report.layers.size() == 3);
  const auto& full = report.layers[0];
  CHECK(full.logit_bound == Numbers{3, 5});
  CHECK(full.logit_max == Numbers{2, 4});
  CHECK(full.entropy == Numbers{1, 2});
  CHECK(full.entropy_relative == Numbers{0.5, 0.25});
  CHECK(full.q_rms == Numbers{3, 4});
  CHECK(full.k_rms == Numbers{5});
  const auto& part = report.layers[2];
  CHECK(part.k_rms == Numbers{3});
  for (const auto* numbers : {&part.logit_bound, &part.logit_max, &part.entropy, &part.entropy_relative, &part.q_rms}) {
    CHECK(numbers->empty());
  }
  CHECK(report.layers[1].k_rms.empty());
}

TEST_CASE("vectors of two ranks combine by max and by + into the report of all rows", "[unit]") {
  const HealthSums first = sums_of(0), second = sums_of(2);
  const HealthVectors a = pack(first), b = pack(second);
  CHECK(a.maxima.scalar_type() == at::kDouble);
  const HealthReport both = unpack(first, {at::maximum(a.maxima, b.maxima), a.sums + b.sums});
  HealthSums together = first;
  for (size_t i = 0; i < second.layers.size(); ++i) together.add(static_cast<int64_t>(i), second.layers[i]);
  const HealthReport expected = unpack(together, pack(together));
  for (size_t i = 0; i < 3; ++i) {
    CHECK(both.layers[i].logit_bound == expected.layers[i].logit_bound);
    CHECK(both.layers[i].logit_max == expected.layers[i].logit_max);
    CHECK(both.layers[i].entropy == expected.layers[i].entropy);
    CHECK(both.layers[i].entropy_relative == expected.layers[i].entropy_relative);
    CHECK(both.layers[i].q_rms == expected.layers[i].q_rms);
    CHECK(both.layers[i].k_rms == expected.layers[i].k_rms);
  }
  CHECK(both.layers[0].logit_bound == Numbers{5, 5});
  CHECK(both.layers[0].entropy == Numbers{18.0 / 16, 2});
}

TEST_CASE("a report in which nothing was measured is empty", "[unit]") {
  HealthSums sums;
  CHECK(unpack(sums, pack(sums)).layers.empty());
  sums.layers.resize(2);
  const HealthVectors vectors = pack(sums);
  CHECK(vectors.maxima.numel() == 0);
  CHECK(vectors.sums.numel() == 0);
  CHECK(unpack(sums, vectors).layers.size() == 2);
}

TEST_CASE("a mean over no rows is left out", "[unit]") {
  HealthSums sums = sums_of(0);
  sums.layers[0].entropy_rows = 0;
  const HealthReport report = unpack(sums, pack(sums));
  CHECK(report.layers[0].entropy.empty());
  CHECK(report.layers[0].q_rms == Numbers{3, 4});
}

TEST_CASE("NaN goes through into the report and touches no other head or layer", "[unit]") {
  HealthSums sums = sums_of(0);
  sums.layers[0].bound_H = floats({not_a_number, 5});
  sums.layers[0].entropy_H = floats({8, not_a_number});
  const HealthReport report = unpack(sums, pack(sums));
  CHECK(std::isnan(report.layers[0].logit_bound[0]));
  CHECK(report.layers[0].logit_bound[1] == 5);
  CHECK(report.layers[0].entropy[0] == 1);
  CHECK(std::isnan(report.layers[0].entropy[1]));
  CHECK(report.layers[2].k_rms == Numbers{3});
}

TEST_CASE("vectors of another shape are a bug", "[unit]") {
  const HealthSums sums = sums_of(0);
  const HealthVectors vectors = pack(sums);
  HealthSums fewer = sums;
  fewer.layers.pop_back();
  CHECK_THROWS_AS(unpack(fewer, vectors), Bug);
  CHECK_THROWS_AS(unpack(sums, pack(fewer)), Bug);
  CHECK_THROWS_AS(unpack(sums, {vectors.maxima.narrow(0, 0, 3), vectors.sums}), Bug);
}
