// The moving average against its formula, element by element in double.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "optim/ema.h"
#include "support.h"

namespace quell {
namespace {

struct Weights {
  ParameterList parameters;
  Parameter* weight = parameters.add("w", Role::matrix, 0, {3, 5}, Initial::constant(0));
  Arena arena{parameters, {.precision = Precision::fp64}};
  void set(uint64_t key) {
    at::NoGradGuard no_gradients;
    weight->value.copy_(testing::random_tensor({3, 5}, key, at::kDouble));
  }
};

const at::Tensor good = at::zeros({}, at::kBool), bad = at::ones({}, at::kBool);

}  // namespace

TEST_CASE("the average follows its formula, and begins to forget at once", "[unit]") {
  Weights w;
  w.set(1);
  Ema ema(w.arena, 0.3);
  at::Tensor expected = w.weight->value.detach().clone();
  for (int64_t t = 1; t <= 5; ++t) {
    w.set(static_cast<uint64_t>(t) + 1);
    ema.follow(good);
    const double decay = std::min(0.3, (1.0 + static_cast<double>(t)) / (10.0 + static_cast<double>(t)));
    expected = decay * expected + (1 - decay) * w.weight->value.detach();
  }
  const at::Tensor last = w.weight->value.detach().clone();
  {
    const Ema::Instead average(ema);
    CHECK(testing::largest(w.weight->value.detach() - expected) <= 1e-14);
  }
  CHECK(at::equal(w.weight->value, last));
}

TEST_CASE("a bad update leaves the average as it is", "[unit]") {
  Weights w;
  w.set(1);
  Ema ema(w.arena, 0.9);
  const at::Tensor first = w.weight->value.detach().clone();
  w.set(2);
  ema.follow(bad);
  const Ema::Instead average(ema);
  CHECK(at::equal(w.weight->value, first));
}

TEST_CASE("a bad update is not counted: the average forgets as fast after it as without it", "[unit]") {
  at::Tensor averages[2];
  for (const int skipped : {0, 3}) {
    Weights w;
    w.set(1);
    Ema ema(w.arena, 0.9);
    for (int i = 0; i < skipped; ++i) ema.follow(bad);
    w.set(2);
    ema.follow(good);
    const Ema::Instead average(ema);
    averages[skipped > 0] = w.weight->value.detach().clone();
  }
  CHECK(at::equal(averages[0], averages[1]));
}

}  // namespace quell
