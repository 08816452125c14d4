// ops::rotary_table and ops::rotate: the kernel against the twin, the twin against complex numbers, and the laws of rotations.
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <numbers>

#include "base/error.h"
#include "ops/norm.h"
#include "ops/reference.h"
#include "ops/rotary.h"
#include "support.h"

using namespace quell;
using namespace quell::testing;

namespace {

Function rotation(const ops::RotaryTable& table, RopePairing pairing, Kernels kernels) {
  return [=](const std::vector<at::Tensor>& in) { return ops::rotate(in[0], table.cos_TR, table.sin_TR, pairing, kernels); };
}

ops::RotaryTable table_of(int64_t width, int64_t length, at::ScalarType type = at::kFloat, double base = 10000) {
  return ops::rotary_table({base, width, RopePairing::halves, {}}, length, type, at::kCPU);
}

const std::vector both_pairings{RopePairing::halves, RopePairing::interleaved};

}  // namespace

TEST_CASE("rotation is as accurate as its twin for every width, type and pairing", "[unit]") {
  for (const auto pairing : both_pairings) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const auto& [width, turned] : std::vector<std::pair<int64_t, int64_t>>{
               {2, 2}, {32, 32}, {64, 64}, {80, 80}, {128, 128}, {256, 256}, {64, 16}, {80, 32}, {100, 26}, {7, 6}, {128, 2}}) {
        const int64_t length = 10240 / (2 * 3 * width) + 1;
        const auto table = table_of(turned, length + 5);  // longer than needed
        INFO(name_of(pairing) << " " << type << " width " << width << " turned " << turned);
        check_against_twin(rotation(table, pairing, Kernels::fused), rotation(table, pairing, Kernels::reference),
                           {random_tensor({2, length, 3, width}, key_of(1, static_cast<uint64_t>(width)), type)});
      }
    }
  }
}

TEST_CASE("rotation reads views as they lie", "[unit]") {
  const auto table = table_of(32, 40);
  for (const auto pairing : both_pairings) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const std::vector<at::Tensor> views{random_tensor({2, 40, 12, 64}, 2, type).narrow(2, 4, 4),
                                          random_tensor({2, 4, 40, 64}, 3, type).transpose(1, 2),
                                          random_tensor({2, 40, 64, 4}, 4, type).transpose(2, 3)};
      for (const auto& x : views) {
        check_against_twin(rotation(table, pairing, Kernels::fused), rotation(table, pairing, Kernels::reference), {x});
        CHECK(
            at::equal(rotation(table, pairing, Kernels::fused)({x}), rotation(table, pairing, Kernels::fused)({x.contiguous()})));
      }
    }
  }
}

TEST_CASE("the twin multiplies pairs by complex numbers of size 1 and leaves the rest", "[unit]") {
  const auto table = table_of(4, 9, at::kDouble, 100);
  const at::Tensor x = random_tensor({1, 9, 1, 6}, 5, at::kDouble);
  for (const auto pairing : both_pairings) {
    const at::Tensor y = ops::reference::rotate(x, table.cos_TR, table.sin_TR, pairing);
    const auto value = [](const at::Tensor& z, int64_t t, int64_t d) { return z[0][t][0][d].item<double>(); };
    for (int64_t t = 0; t < 9; ++t) {
      for (int64_t r = 0; r < 2; ++r) {
        const int64_t first = pairing == RopePairing::halves ? r : 2 * r,
                      second = pairing == RopePairing::halves ? r + 2 : 2 * r + 1;
        const double angle = static_cast<double>(t) * std::pow(100.0, -static_cast<double>(r) / 2);
        const auto expected = std::complex(value(x, t, first), value(x, t, second)) * std::polar(1.0, angle);
        CHECK(std::abs(std::complex(value(y, t, first), value(y, t, second)) - expected) < 1e-14);
      }
      CHECK(value(y, t, 4) == value(x, t, 4));
      CHECK(value(y, t, 5) == value(x, t, 5));
    }
    CHECK(gradient_error(rotation(table, pairing, Kernels::reference), {x}) < 1e-7);
  }
}

TEST_CASE("position 0 is the identity and rotation keeps every head's norm", "[unit]") {
  const auto table = table_of(64, 50);
  const at::Tensor x = random_tensor({2, 50, 4, 64}, 6);
  for (const auto pairing : both_pairings) {
    const at::Tensor y = ops::rotate(x, table.cos_TR, table.sin_TR, pairing, Kernels::fused);
    CHECK(at::equal(y.select(1, 0), x.select(1, 0)));
    const at::Tensor before = x.to(at::kDouble).norm(2, -1), after = y.to(at::kDouble).norm(2, -1);
    CHECK(largest(after / before - 1) < 4 * ulp(1, at::kFloat));
  }
}

TEST_CASE("dot products of rotated vectors depend on the distance of positions alone", "[unit]") {
  const auto table = table_of(32, 60, at::kDouble);
  const at::Tensor q = random_tensor({1, 1, 1, 32}, 7, at::kDouble), k = random_tensor({1, 1, 1, 32}, 8, at::kDouble);
  const auto turned = [&](const at::Tensor& x, int64_t position) {
    return ops::rotate(x, table.cos_TR.narrow(0, position, 1), table.sin_TR.narrow(0, position, 1), RopePairing::halves);
  };
  const double near = (turned(q, 7) * turned(k, 3)).sum().item<double>(),
               far = (turned(q, 54) * turned(k, 50)).sum().item<double>();
  CHECK(std::abs(near - far) < 1e-12);
}

TEST_CASE("the interleaved pairing is the halves pairing of permuted elements", "[unit]") {
  const auto table = table_of(16, 20);
  const at::Tensor x = random_tensor({1, 20, 2, 16}, 9);
  const auto to_halves = [](const at::Tensor& z) { return z.unflatten(-1, {8, 2}).transpose(-1, -2).flatten(-2); };
  for (const auto kernels : {Kernels::fused, Kernels::reference}) {
    const at::Tensor y = ops::rotate(x, table.cos_TR, table.sin_TR, RopePairing::interleaved, kernels);
    const at::Tensor z = ops::rotate(to_halves(x).contiguous(), table.cos_TR, table.sin_TR, RopePairing::halves, kernels);
    CHECK(largest(to_halves(y) - z) <= 2 * ulp(largest(z), at::kFloat));
  }
}

TEST_CASE("rotation commutes with the norm only where the norm has no weight and no mean", "[unit]") {
  const auto table = table_of(32, 30, at::kDouble);
  const at::Tensor x = random_tensor({2, 30, 3, 32}, 10, at::kDouble), weight = uniform_tensor({32}, 11, 0.5, 1.5, at::kDouble);
  const auto distance = [&](const at::Tensor& w, NormKind kind) {
    const auto turn = [&](const at::Tensor& z) { return ops::rotate(z, table.cos_TR, table.sin_TR, RopePairing::halves); };
    const auto scale = [&](const at::Tensor& z) { return ops::norm(z, w, {}, {kind}); };
    return largest(turn(scale(x)) - scale(turn(x)));
  };
  CHECK(distance({}, NormKind::rmsnorm) < 1e-13);
  CHECK(distance({}, NormKind::l2) < 1e-13);
  CHECK(distance(weight, NormKind::rmsnorm) > 0.1);
  CHECK(distance({}, NormKind::layernorm) > 0.01);
  const at::Tensor tied = weight.narrow(0, 0, 16).repeat({2});  // one weight a pair
  CHECK(distance(tied, NormKind::rmsnorm) < 1e-13);
}

TEST_CASE("scaled frequencies follow their formulas", "[unit]") {
  const int64_t width = 128;
  const auto angle = [&](const RopeScaling& scaling, int64_t pair) {
    const auto table = ops::rotary_table({500000, width, RopePairing::halves, scaling}, 2, at::kDouble, at::kCPU);
    return std::atan2(table.sin_TR[1][pair].item<double>(), table.cos_TR[1][pair].item<double>());
  };
  const RopeScaling llama3{RopeScalingKind::llama3, 8, 1, 4, 8192};
  int stretched = 0, kept = 0, between = 0;
  for (int64_t r = 0; r < width / 2; ++r) {
    const double plain = std::pow(500000.0, -2.0 * static_cast<double>(r) / static_cast<double>(width));
    CHECK(angle({}, r) == Approx(plain).epsilon(1e-12));
    CHECK(angle({RopeScalingKind::linear, 4}, r) == Approx(plain / 4).epsilon(1e-12));
    const double wavelength = 2 * std::numbers::pi / plain;
    double expected = plain;
    if (wavelength > 8192.0 / 1) {
      expected = plain / 8, ++stretched;
    } else if (wavelength < 8192.0 / 4) {
      ++kept;
    } else {
      const double smooth = (8192 / wavelength - 1) / (4 - 1);
      expected = (1 - smooth) * plain / 8 + smooth * plain, ++between;
    }
    CHECK(angle(llama3, r) == Approx(expected).epsilon(1e-12));
  }
  CHECK(stretched > 0);
  CHECK(kept > 0);
  CHECK(between > 0);
}

TEST_CASE("tables and inputs that do not fit are bugs", "[unit]") {
  const auto table = table_of(32, 4);
  const at::Tensor x = at::ones({1, 5, 1, 32});
  CHECK_THROWS_AS(ops::rotate(x, table.cos_TR, table.sin_TR, RopePairing::halves), Bug);
  CHECK_THROWS_AS(ops::rotate(x.narrow(1, 0, 4).narrow(3, 0, 30), table.cos_TR, table.sin_TR, RopePairing::halves), Bug);
  CHECK_THROWS_AS(table_of(31, 4), Bug);
}
