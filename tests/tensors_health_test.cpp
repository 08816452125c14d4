// Health of micro-batches combines by maxima and sums.
#include <catch2/catch.hpp>

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "tensors/health.h"

using namespace quell;

namespace {

LayerHealth measured(float bound, float entropy, double rows) {
  LayerHealth h;
  h.bound_H = at::tensor({bound, -bound});
  h.entropy_H = at::tensor({entropy, 2 * entropy});
  h.entropy_relative_H = at::tensor({entropy / 4, entropy / 2});
  h.entropy_rows = rows;
  h.q_square_H = at::tensor({1.f, 2.f});
  h.k_square_G = at::tensor({3.f});
  h.q_count = 8;
  h.k_count = 4;
  return h;
}

}  // namespace

TEST_CASE("two micro-batches combine into the larger maximum and the sum of sums", "[unit]") {
  HealthSums sums;
  sums.add(1, measured(5, 1, 10));
  sums.add(1, measured(7, 2, 20));
  REQUIRE(sums.layers.size() == 2);
  REQUIRE_FALSE(sums.layers[0].bound_H.defined());
  const LayerHealth& layer = sums.layers[1];
  REQUIRE(at::equal(layer.bound_H, at::tensor({7.f, -5.f})));
  REQUIRE(at::equal(layer.entropy_H, at::tensor({3.f, 6.f})));
  REQUIRE(at::equal(layer.entropy_relative_H, at::tensor({0.75f, 1.5f})));
  REQUIRE(layer.entropy_rows == 30);
  REQUIRE(at::equal(layer.q_square_H, at::tensor({2.f, 4.f})));
  REQUIRE(at::equal(layer.k_square_G, at::tensor({6.f})));
  REQUIRE(layer.q_count == 16);
  REQUIRE(layer.k_count == 8);
  REQUIRE_FALSE(layer.logit_max_H.defined());
}

TEST_CASE("what only one micro-batch measured is kept, and NaN is never hidden", "[unit]") {
  HealthSums sums;
  LayerHealth exact;
  exact.logit_max_H = at::tensor({1.f});
  sums.add(0, exact);
  sums.add(0, measured(NAN, 1, 1));
  sums.add(0, measured(9, 1, 1));
  REQUIRE(at::equal(sums.layers[0].logit_max_H, at::tensor({1.f})));
  REQUIRE(std::isnan(sums.layers[0].bound_H[0].item<float>()));
  REQUIRE_THROWS_AS(sums.add(-1, exact), Bug);
}
