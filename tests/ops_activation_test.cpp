// ops::activate, ops::gated and ops::dropout: kernels against twins, twins against the standard library and finite differences.
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/activation.h"
#include "ops/reference.h"
#include "support.h"

using namespace quell;
using namespace quell::testing;

namespace {

const std::vector plain_kinds{MlpKind::gelu, MlpKind::gelu_tanh, MlpKind::relu_squared};
const std::vector gated_kinds{MlpKind::swiglu, MlpKind::geglu, MlpKind::geglu_tanh};

Function activation(MlpKind kind, Kernels kernels) {
  return [=](const std::vector<at::Tensor>& in) {
    return is_gated(kind) ? ops::gated(in[0], in[1], kind, kernels) : ops::activate(in[0], kind, kernels);
  };
}

void check_kind(MlpKind kind, const at::Tensor& x, const at::Tensor& up) {
  INFO(name_of(kind) << " " << x.scalar_type() << " " << x.sizes() << " strides " << x.strides());
  const std::vector<at::Tensor> inputs = is_gated(kind) ? std::vector{x, up} : std::vector{x};
  check_against_twin(activation(kind, Kernels::fused), activation(kind, Kernels::reference), inputs);
}

std::vector<MlpKind> all_kinds() {
  std::vector<MlpKind> kinds = plain_kinds;
  kinds.insert(kinds.end(), gated_kinds.begin(), gated_kinds.end());
  return kinds;
}

}  // namespace

TEST_CASE("activations are as accurate as their twins in every type, width and range", "[unit]") {
  for (const auto kind : all_kinds()) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const double scale : {0.01, 1.0, 10.0}) {
        const at::Tensor x = random_tensor({4, 8, 352}, 1, type, scale), up = random_tensor({4, 8, 352}, 2, type);
        check_kind(kind, x, up);
        check_kind(kind, x.flatten().narrow(0, 0, 10007), up.flatten().narrow(0, 0, 10007));
      }
    }
  }
}

TEST_CASE("activations read the halves of one matrix as they lie", "[unit]") {
  const at::Tensor both = random_tensor({4, 16, 2 * 96 + 1}, 3);
  for (const auto kind : all_kinds()) {
    check_kind(kind, both.narrow(2, 0, 96), both.narrow(2, 97, 96));
    check_kind(kind, both.narrow(2, 0, 96).transpose(0, 2), both.narrow(2, 97, 96).transpose(0, 2));
  }
}

TEST_CASE("the twins are the functions of the standard library", "[unit]") {
  const at::Tensor x = at::linspace(-6, 6, 49, at::kDouble), up = random_tensor({49}, 4, at::kDouble);
  const auto check = [&](const at::Tensor& y, auto&& f) {
    for (int64_t i = 0; i < 49; ++i) {
      CHECK(y[i].item<double>() == Approx(f(x[i].item<double>(), up[i].item<double>())).epsilon(1e-12).margin(1e-15));
    }
  };
  const auto gelu = [](double v) { return 0.5 * v * std::erfc(-v / std::numbers::sqrt2); };
  const auto gelu_tanh = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v)));
  };
  using ops::reference::activate;
  using ops::reference::gated;
  check(activate(x, MlpKind::gelu), [&](double v, double) { return gelu(v); });
  check(activate(x, MlpKind::gelu_tanh), [&](double v, double) { return gelu_tanh(v); });
  check(activate(x, MlpKind::relu_squared), [&](double v, double) { return v > 0 ? v * v : 0; });
  check(gated(x, up, MlpKind::swiglu), [&](double v, double u) { return v / (1 + std::exp(-v)) * u; });
  check(gated(x, up, MlpKind::geglu), [&](double v, double u) { return gelu(v) * u; });
  check(gated(x, up, MlpKind::geglu_tanh), [&](double v, double u) { return gelu_tanh(v) * u; });
}

TEST_CASE("the twins' gradients agree with finite differences of activations", "[unit]") {
  for (const auto kind : all_kinds()) {
    INFO(name_of(kind));
    std::vector<at::Tensor> inputs{random_tensor({3, 4}, 5, at::kDouble), random_tensor({3, 4}, 6, at::kDouble)};
    if (!is_gated(kind)) inputs.pop_back();
    CHECK(gradient_error(activation(kind, Kernels::reference), inputs) < 1e-7);
  }
}

TEST_CASE("far inputs, infinities and NaN go through activations as through their twins", "[unit]") {
  const at::Tensor x = at::tensor({-1e30f, -200.f, -90.f, -15.f, 0.f, 15.f, 90.f, 200.f, 1e15f, NAN, INFINITY});
  const at::Tensor up = at::ones_like(x);
  for (const auto kind : all_kinds()) {
    INFO(name_of(kind));
    const at::Tensor fast = activation(kind, Kernels::fused)({x, up}), twin = activation(kind, Kernels::reference)({x, up});
    CHECK(at::equal(fast.isnan(), twin.isnan()));
    const at::Tensor finite = twin.isfinite();
    CHECK(at::equal(fast.isfinite(), finite));
    CHECK(at::allclose(fast.masked_select(finite), twin.masked_select(finite), 1e-6, 1e-12));
  }
}

TEST_CASE("dropout with probability 0 is the input itself, and else drops and rescales by its key", "[unit]") {
  const at::Tensor x = uniform_tensor({100, 100}, 7, 1, 2).requires_grad_(true);
  CHECK(ops::dropout(x, 0, 1).is_same(x));
  const at::Tensor y = ops::dropout(x, 0.25, 1);
  const at::Tensor kept = y != 0;
  CHECK(std::abs(kept.to(at::kDouble).mean().item<double>() - 0.75) < 5 * std::sqrt(0.25 * 0.75 / 10000));
  CHECK(at::equal(y.masked_select(kept), (x * static_cast<float>(1 / 0.75)).masked_select(kept)));
  CHECK(at::equal(ops::dropout(x, 0.25, 1), y));
  CHECK_FALSE(at::equal(ops::dropout(x, 0.25, 2), y));
  const at::Tensor dx = gradients(y, at::ones_like(y), {x})[0];
  CHECK(at::equal(dx != 0, kept));
}

TEST_CASE("a kind with the wrong number of inputs is a bug", "[unit]") {
  const at::Tensor x = at::ones({4});
  CHECK_THROWS_AS(ops::activate(x, MlpKind::swiglu), Bug);
  CHECK_THROWS_AS(ops::gated(x, x, MlpKind::gelu), Bug);
  CHECK_THROWS_AS(ops::gated(x, at::ones({5}), MlpKind::swiglu), Bug);
  CHECK_THROWS_AS(ops::activate(x.to(at::kDouble), MlpKind::gelu, Kernels::fused), UsageError);
}
