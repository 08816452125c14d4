// Losses and counts of classes: the sigmoid loss against its formula in float64, and targets among the five largest logits.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "ops/loss.h"
#include "support.h"

namespace quell::ops {
namespace {

const std::vector<int64_t> targets{3, 0, ignored_target, 7, 3, 1};

}  // namespace

TEST_CASE("the sigmoid loss is the sum over classes of binary cross entropies", "[unit]") {
  const double smoothing = GENERATE(0.0, 0.2);
  at::Tensor logits = testing::random_tensor({6, 9}, 1, at::kDouble, 3).requires_grad_();
  const LossSums sums = output_loss(logits, at::tensor(targets), {.kind = LossKind::sigmoid, .label_smoothing = smoothing});
  double expected = 0;
  at::Tensor gradient = at::zeros_like(logits);
  for (int64_t i = 0; i < 6; ++i) {
    for (int64_t j = 0; j < 9 && targets[static_cast<size_t>(i)] >= 0; ++j) {
      const double x = logits[i][j].item<double>(), t = smoothing / 9 + (targets[static_cast<size_t>(i)] == j ? 1 - smoothing : 0);
      expected += -t * std::log(1 / (1 + std::exp(-x))) - (1 - t) * std::log(1 / (1 + std::exp(x)));
      gradient[i][j] = 1 / (1 + std::exp(-x)) - t;
    }
  }
  CHECK(sums.objective.item<double>() == Approx(expected).epsilon(1e-13));
  CHECK(sums.cross_entropy.item<double>() == Approx(expected).epsilon(1e-13));
  CHECK(sums.count.item<int64_t>() == 5);
  sums.objective.backward();
  CHECK(testing::largest(logits.grad() - gradient) <= 1e-14);
}

TEST_CASE("a sigmoid loss of large logits neither overflows nor loses its gradient", "[unit]") {
  at::Tensor logits = at::tensor({1e4f, -1e4f}).view({1, 2}).requires_grad_();
  const LossSums sums = output_loss(logits, at::tensor({int64_t{1}}), {.kind = LossKind::sigmoid});
  CHECK(sums.objective.item<double>() == 2e4);
  sums.objective.backward();
  CHECK(at::equal(logits.grad(), at::tensor({1.0f, -1.0f}).view({1, 2})));
}

TEST_CASE("a target is among the five largest where fewer than five logits exceed it", "[unit]") {
  const at::Tensor logits = testing::random_tensor({6, 9}, 2, GENERATE(at::kFloat, at::kDouble));
  int64_t expected = 0;
  for (int64_t i = 0; i < 6; ++i) {
    const int64_t target = targets[static_cast<size_t>(i)];
    if (target < 0) continue;
    int64_t larger = 0;
    for (int64_t j = 0; j < 9; ++j) larger += logits[i][j].item<double>() > logits[i][target].item<double>();
    expected += larger < 5;
  }
  REQUIRE(expected > 0);
  REQUIRE(expected < 5);
  CHECK(output_loss(logits, at::tensor(targets), {.top5 = true}).top5.item<int64_t>() == expected);
  CHECK_FALSE(output_loss(logits, at::tensor(targets), {}).top5.defined());
}

}  // namespace quell::ops
