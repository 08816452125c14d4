// Draws are functions of (key, element); their distribution is tested at fixed keys, so that no run can differ.
#include <catch2/catch.hpp>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "tensors/fill.h"

using namespace quell;

namespace {

at::Tensor drawn(int64_t size, Initial initial, uint64_t key, at::ScalarType type = at::kFloat) {
  at::Tensor flat = at::empty({size}, at::TensorOptions().dtype(type));
  fill(flat, initial, key);
  return flat;
}

// Runs `fn` with another number of threads and restores it.
template <class F>
auto with_threads(int threads, F fn) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  auto result = fn();
  at::set_num_threads(before);
  return result;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Kolmogorov and Smirnov's statistic times sqrt(n); above 1.95 with probability 0.001 if the distribution is right.
template <class Cdf>
double kolmogorov_smirnov(const at::Tensor& sample, Cdf cdf) {
  const at::Tensor sorted = std::get<0>(sample.to(at::kDouble).sort());
  const double* x = sorted.const_data_ptr<double>();
  const double n = static_cast<double>(sorted.numel());
  double worst = 0;
  for (int64_t i = 0; i < sorted.numel(); ++i) {
    const double expected = cdf(x[i]);
    worst = std::max({worst, std::abs(expected - i / n), std::abs(expected - (i + 1) / n)});
  }
  return worst * std::sqrt(n);
}

}  // namespace

TEST_CASE("normal values have the normal distribution", "[unit]") {
  const at::Tensor x = drawn(100'000, Initial::normal(0.02), 1);
  REQUIRE(kolmogorov_smirnov(x / 0.02, normal_cdf) < 1.95);
  // No block is used twice.
  const at::Tensor wide = std::get<0>(drawn(100'000, Initial::normal(1), 1, at::kDouble).sort());
  REQUIRE((wide.slice(0, 1) - wide.slice(0, 0, -1)).min().item<double>() > 0);
  // Pairs come from one block: neighbours must not be correlated (standard error 1 / sqrt(n)).
  const at::Tensor pairs = (x / 0.02).view({-1, 2});
  const double correlation = (pairs.select(1, 0) * pairs.select(1, 1)).mean().item<double>();
  REQUIRE(std::abs(correlation) < 5 / std::sqrt(50'000.0));
}

TEST_CASE("truncated normal values lie within three deviations and keep the shape inside", "[unit]") {
  const at::Tensor x = drawn(100'000, Initial::truncated_normal(2), 2) / 2;
  REQUIRE(x.abs().max().item<double>() <= 3);
  const double outside = normal_cdf(-3);
  REQUIRE(kolmogorov_smirnov(x, [&](double v) { return (normal_cdf(v) - outside) / (1 - 2 * outside); }) < 1.95);
  // Values that needed no second draw are those of the plain normal.
  const at::Tensor plain = drawn(100'000, Initial::normal(2), 2) / 2;
  const at::Tensor inside = plain.abs() <= 3;
  REQUIRE(inside.sum().item<int64_t>() < 100'000);
  REQUIRE(at::equal(x.masked_select(inside), plain.masked_select(inside)));
}

TEST_CASE("a draw depends on neither the number of threads nor the tensor's length", "[unit]") {
  for (const Initial initial : {Initial::normal(1), Initial::truncated_normal(1)}) {
    const auto draw = [&] { return drawn(50'001, initial, 3); };
    const at::Tensor one = with_threads(1, draw);
    REQUIRE(at::equal(one, with_threads(3, draw)));
    REQUIRE(at::equal(one.narrow(0, 0, 777), drawn(777, initial, 3)));
    REQUIRE_FALSE(at::equal(one, drawn(50'001, initial, 4)));
  }
}

TEST_CASE("fp64 values round to the fp32 ones", "[unit]") {
  for (const Initial initial : {Initial::normal(0.3), Initial::truncated_normal(0.3), Initial::constant(0.3)}) {
    const at::Tensor wide = drawn(10'000, initial, 5, at::kDouble);
    REQUIRE(at::equal(wide.to(at::kFloat), drawn(10'000, initial, 5)));
    if (initial.kind != Initial::Kind::constant) REQUIRE_FALSE(at::equal(wide.to(at::kFloat).to(at::kDouble), wide));
  }
}

TEST_CASE("a parameter's values follow from seed and name, whatever else is declared", "[unit]") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16);
  const auto values = [&](uint64_t seed, bool with_another) {
    ParameterList list;
    if (with_another) list.add("first", Role::matrix, 0, {11, 3}, Initial::normal(1));
    Parameter* p = list.add("q.weight", Role::matrix, 0, {33, 7}, Initial::normal(0.02));
    Arena arena(list, {precision, 1, at::kCPU});
    fill(list, arena, seed);
    REQUIRE(at::equal(p->compute, p->value.to(p->compute.scalar_type())));
    return p->value.detach().clone();
  };
  REQUIRE(at::equal(values(1, false), values(1, true)));
  REQUIRE_FALSE(at::equal(values(1, false), values(2, false)));

  ParameterList list;
  Parameter* a = list.add("a", Role::matrix, 0, {100}, Initial::normal(1));
  Parameter* b = list.add("b", Role::matrix, 0, {100}, Initial::normal(1));
  Parameter* c = list.add("c", Role::bias, 0, {100}, Initial::constant(0.5));
  Arena arena(list, {});
  fill(list, arena, 1);
  REQUIRE_FALSE(at::equal(a->value, b->value));
  REQUIRE(at::equal(c->value, at::full({100}, 0.5f)));
}

TEST_CASE("a dropout mask keeps the promised share, scaled, and is a function of key and element", "[unit]") {
  for (const double p : {0.1, 0.5, 0.9}) {
    const at::Tensor mask = dropout_mask(at::empty({100, 1003}), p, 6);
    REQUIRE(mask.sizes() == at::IntArrayRef({100, 1003}));
    const at::Tensor kept = mask != 0;
    const double n = 100'300;
    REQUIRE(std::abs(kept.sum().item<double>() - n * (1 - p)) < 5 * std::sqrt(n * p * (1 - p)));
    const at::Tensor values = mask.masked_select(kept);
    REQUIRE(at::equal(values, at::full_like(values, static_cast<float>(1 / (1 - p)))));
    const auto again = [&] { return dropout_mask(at::empty({100, 1003}), p, 6); };
    REQUIRE(at::equal(mask, with_threads(3, again)));
    REQUIRE_FALSE(at::equal(mask, dropout_mask(at::empty({100, 1003}), p, 7)));
    for (const auto type : {at::kBFloat16, at::kDouble}) {
      const at::Tensor other = dropout_mask(at::empty({100, 1003}, at::TensorOptions().dtype(type)), p, 6);
      REQUIRE(other.scalar_type() == type);
      REQUIRE(at::equal(other != 0, kept));
    }
  }
  REQUIRE(at::equal(dropout_mask(at::empty({9}), 0, 1), at::ones({9})));
}

TEST_CASE("each sample of a batch has a dropout mask of its own, whatever stands beside it", "[unit]") {
  const at::Tensor like_B = at::empty({3, 7, 11});
  const auto masks = [&](const at::Tensor& like, uint64_t key, const std::vector<int64_t>& samples, double p = 0.5) {
    return dropout_masks(like, p, key, at::tensor(samples, at::kLong));
  };
  const uint64_t key = key_of(1, 4);  // as a layer has it: (the run's key, place)
  const at::Tensor one = masks(like_B, key, {5, 6, 7});
  REQUIRE(one.sizes() == like_B.sizes());
  REQUIRE(at::equal(one, masks(like_B, key, {5, 6, 7})));
  // The next step sees later samples: the position in the data never comes back, not in another epoch either.
  REQUIRE_FALSE(at::equal(one, masks(like_B, key, {8, 9, 10})));
  // 77 draws agree by chance with probability 2^-77, so two equal masks are one mask used twice.
  const std::vector<at::Tensor> all{one[0], one[1], one[2], masks(like_B, key_of(1, 5), {5, 6, 7})[0],
                                    masks(like_B, key_of(2, 4), {5, 6, 7})[0]};  // another layer, another run
  for (size_t i = 0; i < all.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      INFO(i << " and " << j);
      REQUIRE_FALSE(at::equal(all[i], all[j]));
    }
  }
  // How a batch is cut, and in which order, changes nothing.
  REQUIRE(at::equal(one[1], masks(like_B.narrow(0, 0, 1), key, {6})[0]));
  REQUIRE(at::equal(one, masks(like_B, key, {7, 6, 5}).flip({0})));
}

TEST_CASE("dropout masks keep the promised share over samples and layers, scaled so that the mean stays one", "[unit]") {
  // The number kept is binomial(n, 1 - p) with the standard deviation sqrt(n p (1 - p)). A right generator leaves six of them
  // with probability 2e-9 at large n, 3e-8 at n = 512 and p = 0.1, where the tail is heavier: 1e-4 for all counts below
  // together. A share of the kept that is wrong by 1 % of itself is at least 14 deviations of the whole away.
  constexpr int64_t samples = 64, layers = 8, elements = 4096;
  const at::Tensor like_B = at::empty({samples, elements}), samples_B = at::arange(samples, at::kLong);
  for (const double p : {0.1, 0.25, 0.5}) {
    INFO("p " << p);
    at::Tensor kept_BD = at::zeros({samples, elements});
    for (uint64_t layer = 0; layer < layers; ++layer) {
      const at::Tensor mask_BD = dropout_masks(like_B, p, key_of(3, layer), samples_B);
      const at::Tensor values = mask_BD.masked_select(mask_BD != 0);
      REQUIRE(at::equal(values, at::full_like(values, static_cast<float>(1 / (1 - p)))));
      kept_BD += (mask_BD != 0).to(at::kFloat);
    }
    const auto within = [p](const at::Tensor& counts, int64_t n) {
      const double deviation = std::sqrt(static_cast<double>(n) * p * (1 - p));
      return (counts.to(at::kDouble) - static_cast<double>(n) * (1 - p)).abs().max().item<double>() < 6 * deviation;
    };
    REQUIRE(within(kept_BD.sum(), samples * layers * elements));
    REQUIRE(within(kept_BD.sum(1), layers * elements));  // of each sample
    REQUIRE(within(kept_BD.sum(0), samples * layers));   // of each element, over samples and layers: no place is favoured
  }
}

TEST_CASE("dropout with probability 0 keeps all, and probabilities outside [0, 1) are a bug", "[unit]") {
  const at::Tensor like_B = at::empty({2, 9}), samples_B = at::arange(2, at::kLong);
  REQUIRE(at::equal(dropout_masks(like_B, 0, 1, samples_B), at::ones({2, 9})));
  // Just below 1: what is kept is kept large, never infinite.
  const at::Tensor rare = dropout_masks(at::empty({2, 1000}), 1 - 0x1p-10, 1, samples_B);
  REQUIRE(at::logical_or(rare == 0, rare == 1024).all().item<bool>());
  for (const double p : {1.0, -0.1, std::nan("")}) REQUIRE_THROWS_AS(dropout_masks(like_B, p, 1, samples_B), Bug);
  REQUIRE_THROWS_AS(dropout_masks(like_B, 0.5, 1, at::arange(3, at::kLong)), Bug);
  REQUIRE_THROWS_AS(dropout_masks(like_B, 0.5, 1, {}), Bug);
}
