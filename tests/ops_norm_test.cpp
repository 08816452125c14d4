// ops::norm: the fused kernels against the twin, the twin against formulas and finite differences, and the laws of each kind.
#include <ATen/Parallel.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "base/error.h"
#include "ops/norm.h"
#include "ops/reference.h"
#include "support.h"

using namespace quell;
using namespace quell::testing;
using ops::NormSpec;

namespace {

struct Case {
  NormKind kind;
  bool center = true, bias = false;
};
const std::vector<Case> all_cases{{NormKind::layernorm, true, true},
                                  {NormKind::layernorm, true},
                                  {NormKind::layernorm, false, true},
                                  {NormKind::rmsnorm},
                                  {NormKind::l2}};

NormSpec spec_of(const Case& c, Kernels kernels, CastOrder cast = CastOrder::weight_then_cast, bool zero_centered = false) {
  return {c.kind, c.center, zero_centered, c.kind == NormKind::l2 ? 1e-12 : 1e-6, cast, kernels};
}

// Inputs x, weight, bias (those that the case has), and the norm as a function of them.
Function norm_of(const NormSpec& spec, bool weight, bool bias) {
  return [=](const std::vector<at::Tensor>& in) {
    return ops::norm(in[0], weight ? in[1] : at::Tensor(), bias ? in[weight ? 2 : 1] : at::Tensor(), spec);
  };
}

void check_case(const Case& c, const at::Tensor& x, at::IntArrayRef weight_shape, at::ScalarType weight_type, CastOrder cast,
                bool zero_centered) {
  const bool weight = !weight_shape.empty(), bias = c.bias && weight;
  std::vector<at::Tensor> inputs{x};
  if (weight)
    inputs.push_back(uniform_tensor(weight_shape, 2, zero_centered ? -0.5 : 0.5, zero_centered ? 0.5 : 1.5, weight_type));
  if (bias) inputs.push_back(uniform_tensor(weight_shape, 3, -0.5, 0.5, weight_type));
  INFO(name_of(c.kind) << " center " << c.center << " bias " << bias << " x " << x.sizes() << " strides " << x.strides() << " "
                       << x.scalar_type() << " weight " << weight_shape << " " << weight_type << " " << name_of(cast));
  check_against_twin(norm_of(spec_of(c, Kernels::fused, cast, zero_centered), weight, bias),
                     norm_of(spec_of(c, Kernels::reference, cast, zero_centered), weight, bias), inputs);
}

}  // namespace

TEST_CASE("norms are as accurate as their twins for every kind, width, type and weight shape", "[unit]") {
  for (const auto& c : all_cases) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const int64_t width : {5, 7, 32, 33, 64, 80, 128, 256}) {
        const int64_t heads = 3, rows = 10240 / (heads * width) + 1;
        const at::Tensor x =
            random_tensor({2, rows, heads, width}, key_of(1, static_cast<uint64_t>(width)), type) + (c.center ? 0.5 : 0);
        check_case(c, x, {}, at::kFloat, CastOrder::weight_then_cast, false);
        check_case(c, x, {width}, at::kFloat, CastOrder::weight_then_cast, false);
        check_case(c, x, {heads, width}, at::kFloat, CastOrder::weight_then_cast, true);
      }
    }
  }
}

TEST_CASE("norms are as accurate as their twins for every rounding order and type of weight", "[unit]") {
  const at::Tensor x = random_tensor({16, 12, 64}, 4, at::kBFloat16);
  for (const auto& c : all_cases) {
    for (const auto cast : {CastOrder::weight_then_cast, CastOrder::cast_then_weight, CastOrder::none}) {
      for (const auto weight_type : {at::kFloat, at::kBFloat16}) {
        for (const bool zero_centered : {false, true}) check_case(c, x, {64}, weight_type, cast, zero_centered);
      }
    }
  }
}

TEST_CASE("norms read strided rows as they lie", "[unit]") {
  for (const auto& c : all_cases) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor wide = random_tensor({4, 16, 3 * 6, 64}, 5, type);
      const at::Tensor head_view = wide.narrow(2, 6, 6);                                  // [B, T, H, D] inside [B, T, 3 H D]
      const at::Tensor swapped = random_tensor({4, 6, 16, 64}, 6, type).transpose(1, 2);  // three levels: copied
      const at::Tensor column = random_tensor({64, 4, 16}, 7, type).permute({1, 2, 0});   // last dimension strided: copied
      const at::Tensor spaced = random_tensor({4, 16, 9, 80}, 30, type).narrow(2, 2, 6).narrow(3, 8, 64);  // gaps of both levels
      for (const auto& x : {head_view, spaced, swapped, column}) {
        check_case(c, x, {64}, at::kFloat, CastOrder::weight_then_cast, false);
        if (x.dim() == 4) check_case(c, x, {6, 64}, at::kFloat, CastOrder::weight_then_cast, false);
      }
    }
  }
}

TEST_CASE("a gradient that arrives as a view or expanded gives what a dense one gives", "[unit]") {
  const at::Tensor x = random_tensor({4, 8, 32}, 8), weight = random_tensor({32}, 9);
  const auto pass = [&](const at::Tensor& cotangent) {
    const at::Tensor xs = x.clone().requires_grad_(true), ws = weight.clone().requires_grad_(true);
    return gradients(ops::norm(xs, ws, {}, {}), cotangent, {xs, ws});
  };
  const at::Tensor view = random_tensor({4, 8, 40}, 10).narrow(2, 3, 32), one = at::ones({1, 1, 1}).expand({4, 8, 32});
  for (const auto& cotangent : {view, one}) {
    const auto strided = pass(cotangent), dense = pass(cotangent.contiguous());
    CHECK(at::equal(strided[0], dense[0]));
    CHECK(at::equal(strided[1], dense[1]));
  }
}

TEST_CASE("bf16 norms equal their twins in every bit but near a rounding boundary", "[unit]") {
  const at::Tensor x = random_tensor({1024, 64}, 11, at::kBFloat16), weight = uniform_tensor({64}, 12, 0.5, 1.5);
  for (const auto kind : {NormKind::layernorm, NormKind::rmsnorm, NormKind::l2}) {
    for (const auto cast : {CastOrder::weight_then_cast, CastOrder::cast_then_weight}) {
      const Case c{kind};
      const at::Tensor fast = ops::norm(x, weight, {}, spec_of(c, Kernels::fused, cast));
      const at::Tensor twin = ops::norm(x, weight, {}, spec_of(c, Kernels::reference, cast));
      // A normalised value lies within 4 fp32 ulp of one of the 2^16 boundaries of its bf16 ulp with probability 2^-13.
      INFO(name_of(kind) << " " << name_of(cast));
      CHECK((fast != twin).sum().item<int64_t>() <= 65536 / 8192 * 4);
    }
  }
}

TEST_CASE("the two rounding orders differ in a good part of the bf16 elements", "[unit]") {
  const at::Tensor x = random_tensor({512, 64}, 13, at::kBFloat16), weight = uniform_tensor({64}, 14, 0.5, 1.5);
  for (const auto kernels : {Kernels::fused, Kernels::reference}) {
    const at::Tensor a = ops::norm(x, weight, {}, spec_of({NormKind::rmsnorm}, kernels, CastOrder::cast_then_weight));
    const at::Tensor b = ops::norm(x, weight, {}, spec_of({NormKind::rmsnorm}, kernels, CastOrder::weight_then_cast));
    CHECK((a != b).to(at::kDouble).mean().item<double>() > 0.1);
  }
}

TEST_CASE("the twins follow the written formulas", "[unit]") {
  const at::Tensor x = at::tensor({3.0, 4.0, 0.0, -5.0}, at::kDouble).view({1, 4});
  const at::Tensor weight = at::tensor({1.0, 2.0, 3.0, 0.5}, at::kDouble), bias = at::tensor({0.5, 0.0, 1.0, -1.0}, at::kDouble);
  const auto expect = [&](const NormSpec& spec, const at::Tensor& w, const at::Tensor& b, const std::vector<double>& y) {
    const at::Tensor difference = ops::reference::norm(x, w, b, spec) - at::tensor(y, at::kDouble).view({1, 4});
    CHECK(largest(difference) < 1e-14);
  };
  const double root = std::sqrt(50.0 / 4 + 0.5);
  expect({NormKind::rmsnorm, true, false, 0.5}, weight, {}, {3 / root, 8 / root, 0, -2.5 / root});
  expect({NormKind::rmsnorm, true, true, 0.5}, weight, {}, {6 / root, 12 / root, 0, -7.5 / root});
  const double length = std::sqrt(50.0);
  expect({NormKind::l2, true, false, 0}, {}, {}, {3 / length, 4 / length, 0, -5 / length});
  expect({NormKind::l2, true, false, 10}, {}, {}, {0.3, 0.4, 0, -0.5});
  const double spread = std::sqrt((2.5 * 2.5 + 3.5 * 3.5 + 0.25 + 5.5 * 5.5) / 4 + 0.5);
  expect({NormKind::layernorm, true, false, 0.5}, weight, bias,
         {2.5 / spread + 0.5, 7 / spread, -1.5 / spread + 1, -2.75 / spread - 1});
  expect({NormKind::layernorm, false, false, 0.5}, weight, bias, {3 / root + 0.5, 8 / root, 1, -2.5 / root - 1});
}

TEST_CASE("the twins' gradients agree with finite differences", "[unit]") {
  const at::Tensor x = random_tensor({3, 2, 5}, 15, at::kDouble), bias = random_tensor({2, 5}, 16, at::kDouble);
  const at::Tensor weight = uniform_tensor({2, 5}, 17, 0.5, 1.5, at::kDouble);
  for (const auto& c : all_cases) {
    for (const bool zero_centered : {false, true}) {
      INFO(name_of(c.kind) << " " << c.center);
      NormSpec spec = spec_of(c, Kernels::reference, CastOrder::weight_then_cast, zero_centered);
      spec.eps = 0.01;
      CHECK(gradient_error(norm_of(spec, true, true), {x, weight, bias}) < 1e-7);
      if (c.kind != NormKind::l2) continue;
      spec.eps = 100;  // eps decides: the norm is a division by a constant
      CHECK(gradient_error(norm_of(spec, true, true), {x, weight, bias}) < 1e-7);
    }
  }
}

TEST_CASE("rows below eps are divided by it in l2, and pass their gradient as through a constant", "[unit]") {
  at::Tensor x = random_tensor({200, 64}, 18, at::kFloat);
  x.slice(0, 0, 100).mul_(1e-3);
  x[0].zero_();
  const auto l2 = [](Kernels kernels) {
    return norm_of({NormKind::l2, true, false, 0.1, CastOrder::weight_then_cast, kernels}, false, false);
  };
  check_against_twin(l2(Kernels::fused), l2(Kernels::reference), {x});
  CHECK(largest(l2(Kernels::fused)({x})[0]) == 0);
}

TEST_CASE("normalised rows have size 1, whatever the scale of the input", "[unit]") {
  const at::Tensor x = random_tensor({64, 80}, 19);
  for (const auto kernels : {Kernels::fused, Kernels::reference}) {
    for (const auto kind : {NormKind::rmsnorm, NormKind::layernorm, NormKind::l2}) {
      const NormSpec spec{kind, true, false, 1e-30, CastOrder::weight_then_cast, kernels};
      const at::Tensor y = ops::norm(x, {}, {}, spec).to(at::kDouble);
      const at::Tensor size = kind == NormKind::l2 ? y.square().sum(-1) : y.square().mean(-1);
      CHECK(largest(size - 1) < 16 * ulp(1, at::kFloat));
      // Powers of two scale exactly.
      CHECK(at::equal(ops::norm(x * 8, {}, {}, spec), ops::norm(x, {}, {}, spec)));
      if (kind == NormKind::layernorm) CHECK(largest(y.mean(-1)) < 4 * ulp(1, at::kFloat));
    }
  }
}

TEST_CASE("without eps the gradient is orthogonal to the row", "[unit]") {
  const at::Tensor x = random_tensor({32, 64}, 20).requires_grad_(true), weight = uniform_tensor({64}, 21, 0.5, 1.5);
  for (const auto kind : {NormKind::rmsnorm, NormKind::layernorm, NormKind::l2}) {
    const at::Tensor y = ops::norm(x, weight, {}, {kind, true, false, 1e-30, CastOrder::weight_then_cast, Kernels::fused});
    const at::Tensor dx = gradients(y, random_tensor(y.sizes(), 22), {x})[0].to(at::kDouble), wide = x.detach().to(at::kDouble);
    const at::Tensor cosine = (dx * wide).sum(-1) / (dx.norm(2, -1) * wide.norm(2, -1));
    CHECK(largest(cosine) < 64 * ulp(1, at::kFloat));
  }
}

TEST_CASE("a bound gradient is added to in place, in its own type, and nothing else is made", "[unit]") {
  const at::Tensor x = random_tensor({64, 4, 32}, 23, at::kBFloat16), cotangent = random_tensor({64, 4, 32}, 24, at::kBFloat16);
  const at::Tensor arena = at::zeros({256});
  at::Tensor weight = uniform_tensor({4, 32}, 25, 0.5, 1.5).requires_grad_(true),
             bias = random_tensor({4, 32}, 26).requires_grad_(true);
  const NormSpec spec{NormKind::layernorm, true, false, 1e-6, CastOrder::weight_then_cast, Kernels::fused};
  const auto free = gradients(ops::norm(x, weight, bias, spec), cotangent, {weight, bias});

  weight.mutable_grad() = arena.narrow(0, 0, 128).view({4, 32});
  bias.mutable_grad() = arena.narrow(0, 128, 128).view({4, 32});
  for (int pass = 0; pass < 2; ++pass) ops::norm(x, weight, bias, spec).backward(cotangent);
  CHECK(weight.grad().data_ptr() == arena.data_ptr());
  CHECK(at::equal(arena.narrow(0, 0, 128).view({4, 32}), free[0] + free[0]));
  CHECK(at::equal(arena.narrow(0, 128, 128).view({4, 32}), free[1] + free[1]));

  // Nothing is handed to the graph: even where gradients are asked for, they are in their views.
  for (const auto& g : gradients(ops::norm(x, weight, bias, spec), cotangent, {weight, bias})) CHECK_FALSE(g.defined());
  CHECK(at::equal(weight.grad(), free[0] + free[0] + free[0]));
}

TEST_CASE("a norm's results do not depend on the number of threads", "[unit]") {
  const at::Tensor x = random_tensor({512, 768}, 27), cotangent = random_tensor({512, 768}, 28);
  const auto pass = [&](int threads) {
    at::set_num_threads(threads);
    const at::Tensor xs = x.clone().requires_grad_(true), weight = at::ones({768}).requires_grad_(true);
    return gradients(ops::norm(xs, weight, {}, {}), cotangent, {xs, weight});
  };
  const int before = at::get_num_threads();
  const auto one = pass(1), two = pass(2);
  at::set_num_threads(before);
  CHECK(at::equal(one[0], two[0]));
  CHECK(at::equal(one[1], two[1]));
}

TEST_CASE("norms of nothing are nothing, and shapes that do not fit are bugs", "[unit]") {
  const at::Tensor none = at::empty({0, 4, 32}).requires_grad_(true), weight = at::ones({32}).requires_grad_(true);
  const auto g = gradients(ops::norm(none, weight, {}, {}), at::empty({0, 4, 32}), {none, weight});
  CHECK(g[0].numel() == 0);
  CHECK(largest(g[1]) == 0);
  const at::Tensor x = at::ones({2, 4, 32});
  CHECK_THROWS_AS(ops::norm(x, at::ones({31}), {}, {}), Bug);
  CHECK_THROWS_AS(ops::norm(x, at::ones({3, 32}), {}, {}), Bug);
  CHECK_THROWS_AS(ops::norm(x, at::ones({32}), at::ones({4, 32}), {}), Bug);
  const NormSpec fused{NormKind::rmsnorm, true, false, 1e-6, CastOrder::weight_then_cast, Kernels::fused};
  CHECK_THROWS_AS(ops::norm(x.to(at::kDouble), {}, {}, fused), UsageError);
  CHECK(at::equal(ops::norm(x, {}, {}, {NormKind::none}), x));
}
