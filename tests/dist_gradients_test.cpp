// Buckets and gradient reduction in a world of one.
#include "base/error.h"
#include "dist/gradients.h"
#include "support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;

namespace {

struct Model {
  ParameterList parameters;
  Model() {
    parameters.add("embedding", Role::embedding, 0, {7, 3}, Initial::constant(0));
    parameters.add("block.a", Role::matrix, 1, {5, 5}, Initial::constant(0));
    parameters.add("block.b", Role::bias, 1, {5}, Initial::constant(0));
    parameters.add("block.frozen", Role::matrix, 1, {4, 4}, Initial::constant(0))->frozen = true;
    parameters.add("output", Role::output, 2, {3, 7}, Initial::constant(0));
  }
};

}  // namespace

TEST_CASE("buckets run from the last unit to the first and hold every trainable element once", "[unit]") {
  for (const int64_t world : {1, 3, 8}) {
    Model model;
    const Arena arena(model.parameters, {.world = world});
    const auto buckets = buckets_of(arena, model.parameters, 1);
    REQUIRE(buckets.size() == 3);
    at::Tensor seen = at::zeros({arena.trainable()}, at::kLong);
    int64_t before = arena.trainable();
    for (const Bucket& bucket : buckets) {
      CHECK(bucket.range.end == before);
      before = bucket.range.begin;
      seen.narrow(0, bucket.range.begin, bucket.range.size()) += 1;
    }
    CHECK(seen.eq(1).all().item<bool>());
    for (const Parameter& parameter : model.parameters) {
      if (parameter.frozen) CHECK(arena.range(parameter).begin >= arena.trainable());
    }
  }
}

TEST_CASE("a world of one leaves the gradients as they are", "[unit]") {
  Model model;
  const Arena arena(model.parameters, {});
  at::Tensor gradients = arena.gradients();
  gradients.copy_(testing::random_tensor({arena.trainable()}, 1));
  const at::Tensor before = gradients.clone();
  const World world;
  GradientReducer(world, gradients, buckets_of(arena, model.parameters)).finish();
  CHECK(at::equal(gradients, before));
}

TEST_CASE("buckets that do not tile the gradients backwards are a bug", "[unit]") {
  const World world;
  const at::Tensor gradients = at::zeros({32});
  CHECK_NOTHROW(GradientReducer(world, gradients, {{{16, 32}, {}}, {{16, 16}, {}}, {{0, 16}, {}}}));
  const std::vector<std::vector<Bucket>> wrong{{},
                                               {{{0, 32}, {}}, {{0, 32}, {}}},
                                               {{{0, 16}, {}}, {{16, 32}, {}}},
                                               {{{16, 32}, {}}, {{0, 15}, {}}},
                                               {{{16, 32}, {}}, {{1, 16}, {}}},
                                               {{{-1, 32}, {}}}};
  for (const auto& buckets : wrong) CHECK_THROWS_AS(GradientReducer(world, gradients, buckets), Bug);
  CHECK_THROWS_AS(GradientReducer(world, at::zeros({4, 8}), {{{0, 32}, {}}}), Bug);
}
