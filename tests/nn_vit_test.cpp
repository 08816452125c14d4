// What the golden files do not show of a vision transformer: the order of patches, fixed positions, positions of another image size,
// drop path, and the seams that every model honours.
#include <catch2/catch.hpp>

#include <cmath>

#include "base/error.h"
#include "nn/model.h"
#include "support.h"
#include "tensors/fill.h"

namespace quell {
namespace {

VitConfig small() {
  VitConfig config;
  config.image = 12;
  config.channels = 1;
  config.patch = 4;
  config.classes = 5;
  config.width = 32;
  config.layers = 3;
  config.heads = 2;
  config.init.head = InitHead::as_matrix;
  return config;
}

struct Built {
  explicit Built(const VitConfig& config, Precision precision = Precision::fp32) : model(parameters, config), arena(parameters, {.precision = precision}) {
    fill(parameters, arena, 1);
  }
  ParameterList parameters;
  Vit model;
  Arena arena;
};

at::Tensor images(int64_t count, uint64_t key) { return testing::random_tensor({count, 1, 12, 12}, key); }

}  // namespace

TEST_CASE("a patch's values stand by channel, row and column, patches by row", "[unit]") {
  const at::Tensor numbers = at::arange(2 * 4 * 6, at::kFloat).view({1, 2, 4, 6});
  const at::Tensor patches = patches_of(numbers, 2);
  REQUIRE(patches.sizes() == at::IntArrayRef({1, 6, 8}));
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      for (int64_t i = 0; i < 8; ++i) {
        const int64_t channel = i / 4, y = 2 * row + i / 2 % 2, x = 2 * column + i % 2;
        CHECK(patches[0][row * 3 + column][i].item<float>() == numbers[0][channel][y][x].item<float>());
      }
    }
  }
  CHECK_THROWS_AS(patches_of(numbers, 4), Bug);
}

TEST_CASE("fixed positions are sines and cosines of column and row by their formula", "[unit]") {
  const at::Tensor positions = sincos_positions(3, 16);
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      for (int64_t i = 0; i < 4; ++i) {
        const double frequency = std::pow(10000.0, -static_cast<double>(i) / 3), x = static_cast<double>(column) * frequency,
                     y = static_cast<double>(row) * frequency;
        const at::Tensor at = positions[row * 3 + column];
        CHECK(at[i].item<double>() == Approx(std::sin(x)).margin(1e-12));
        CHECK(at[4 + i].item<double>() == Approx(std::cos(x)).margin(1e-12));
        CHECK(at[8 + i].item<double>() == Approx(std::sin(y)).margin(1e-12));
        CHECK(at[12 + i].item<double>() == Approx(std::cos(y)).margin(1e-12));
      }
    }
  }
}

TEST_CASE("positions resampled to their own grid are themselves, a constant stays one, and rows stay rows", "[unit]") {
  const at::Tensor random = testing::random_tensor({16, 6}, 2);
  CHECK(testing::largest(resample_positions(random, 16) - random) <= 4 * testing::ulp(testing::largest(random), at::kFloat));
  const at::Tensor constant = resample_positions(at::full({16, 6}, 0.75), 49);
  CHECK(testing::largest(constant - 0.75) <= 8 * testing::ulp(0.75, at::kFloat));
  // A table that depends on the row alone still does, and one transposed is the transposed one.
  const at::Tensor rows = at::arange(4, at::kFloat).view({4, 1, 1}).expand({4, 4, 1}).reshape({16, 1});
  const at::Tensor larger = resample_positions(rows, 64).view({8, 8});
  CHECK(testing::largest(larger - larger.select(1, 0).unsqueeze(1)) <= 8 * testing::ulp(3, at::kFloat));
  CHECK((larger.diff(1, 0) > 0).all().item<bool>());
  CHECK_FALSE(resample_positions(at::zeros({15, 6}), 16).defined());
}

TEST_CASE("drop path takes whole samples, each by its own index, and more of them in later blocks", "[unit]") {
  Forward forward{.training = true, .dropout_key = 7, .samples_B = at::arange(4000)};
  const at::Tensor x = at::ones({4000, 2, 3});
  const at::Tensor y = drop_path(forward, x, 0.25, places::attended(2));
  const at::Tensor first = y.select(1, 0).select(1, 0);
  CHECK(at::equal(y, first.view({-1, 1, 1}).expand_as(y)));
  CHECK((first.eq(0).logical_or(first.sub(1 / 0.75).abs().lt(1e-6))).all().item<bool>());
  // Five deviations of 4000 draws.
  CHECK(first.eq(0).sum().item<double>() == Approx(1000).margin(5 * std::sqrt(4000 * 0.25 * 0.75)));
  forward.samples_B = at::arange(1000, 2000);
  CHECK(at::equal(drop_path(forward, x.narrow(0, 0, 1000), 0.25, places::attended(2)), y.narrow(0, 1000, 1000)));
  CHECK_FALSE(at::equal(drop_path(forward, x.narrow(0, 0, 1000), 0.25, places::transformed(2)), y.narrow(0, 1000, 1000)));
  forward.training = false;
  CHECK(drop_path(forward, x, 0.25, 0).is_same(x));
}

TEST_CASE("logits of an image do not depend on the others of its batch", "[unit]") {
  VitConfig config = small();
  config.pool.kind = GENERATE(PoolKind::mean, PoolKind::token, PoolKind::attention);
  config.class_token = config.pool.kind == PoolKind::token;
  const Built built(config, Precision::fp64);
  Forward forward;
  forward.kernels = Kernels::reference;
  const at::Tensor batch = images(5, 3).to(at::kDouble), all = built.model(forward, batch);
  for (int64_t i = 0; i < 5; ++i) CHECK(testing::largest(built.model(forward, batch.narrow(0, i, 1)) - all.narrow(0, i, 1)) <= 1e-13);
}

TEST_CASE("without positions the mean over patches does not see their order", "[unit]") {
  VitConfig config = small();
  config.position.kind = PositionKind::none;
  const Built built(config, Precision::fp64);
  Forward forward;
  forward.kernels = Kernels::reference;
  const at::Tensor batch = images(2, 4).to(at::kDouble);
  const at::Tensor flipped = batch.view({2, 1, 3, 4, 12}).flip(2).reshape({2, 1, 12, 12});  // rows of patches, not of pixels
  CHECK(testing::largest(built.model(forward, batch) - built.model(forward, flipped)) <= 1e-13);
}

TEST_CASE("a vision transformer in bf16 stays near its fp32 self", "[unit]") {
  VitConfig config = small();
  config.registers = 2;
  config.layer_scale = 0.5;
  const Built narrow(config, Precision::bf16), wide(config, Precision::fp32);
  const at::Tensor batch = images(64, 5), logits = narrow.model(Forward{}, batch), truth = wide.model(Forward{}, batch);
  CHECK(logits.scalar_type() == at::kBFloat16);
  // A dozen roundings of 2^-8 in a row, which do not all point one way.
  CHECK(testing::largest(logits.to(at::kFloat) - truth) <= 12 * std::ldexp(testing::largest(truth), -8));
  logits.to(at::kFloat).square().sum().backward();
  for (const Parameter& parameter : narrow.parameters) {
    INFO(parameter.name);
    CHECK(at::isfinite(parameter.compute.grad()).all().item<bool>());
  }
}

TEST_CASE("each block goes through the seam, as unit 1 to layers", "[unit]") {
  const Built built(small());
  std::vector<int64_t> units;
  Forward forward;
  forward.around = [&](int64_t unit, const at::Tensor& x, const Forward::Body& body) {
    units.push_back(unit);
    return body(x);
  };
  built.model(forward, images(1, 6));
  CHECK(units == std::vector<int64_t>{1, 2, 3});
}

}  // namespace quell
