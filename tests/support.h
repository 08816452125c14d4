// What tests of torch-using rooms share: seeded tensors, the numeric criterion of DESIGN section 7, and a check of gradients by
// finite differences. It holds no tolerance that was found by trial.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <numbers>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.h"
#include "temporary.h"

// LibTorch's logging has a macro CHECK of its own, which ends the process. Catch's is meant in every test: include this header
// after all others.
#undef CHECK
#define CHECK(...) INTERNAL_CATCH_TEST("CHECK", Catch::ResultDisposition::ContinueOnFailure, __VA_ARGS__)

namespace quell::testing {

// Standard normal values times `scale`, a function of (key, element) alone, rounded to `type`. No gradient is required.
inline at::Tensor random_tensor(at::IntArrayRef shape, uint64_t key, at::ScalarType type = at::kFloat, double scale = 1) {
  at::Tensor flat = at::empty(shape, at::kDouble);
  double* values = flat.data_ptr<double>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double radius = std::sqrt(-2 * std::log1p(-unit_double(key, 2 * static_cast<uint64_t>(i))));
    values[i] = scale * radius * std::cos(2 * std::numbers::pi * unit_double(key, 2 * static_cast<uint64_t>(i) + 1));
  }
  return flat.to(type);
}

// Uniform values in [low, high).
inline at::Tensor uniform_tensor(at::IntArrayRef shape, uint64_t key, double low, double high, at::ScalarType type = at::kFloat) {
  at::Tensor flat = at::empty(shape, at::kDouble);
  double* values = flat.data_ptr<double>();
  for (int64_t i = 0; i < flat.numel(); ++i) values[i] = low + (high - low) * unit_double(key, static_cast<uint64_t>(i));
  return flat.to(type);
}

// Distance from |x| to the next larger number of `type`; 0 for 0.
inline double ulp(double x, at::ScalarType type) {
  if (x == 0) return 0;
  const int digits = type == at::kDouble ? 53 : type == at::kFloat ? 24 : type == at::kBFloat16 ? 8 : 11;
  return std::ldexp(1.0, std::ilogb(x) - digits + 1);
}

struct Accuracy {
  double fast = 0, twin = 0;                                  // error = max |x - truth| / max |truth|
  double allowed = 0;                                         // 2 x twin + 4 ulp of max |truth|
  explicit operator bool() const { return fast <= allowed; }  // false for NaN
  friend std::ostream& operator<<(std::ostream& out, const Accuracy& a) {
    return out << "error " << a.fast << " (the twin's " << a.twin << ", allowed " << a.allowed << ")";
  }
};

inline double largest(const at::Tensor& x) { return x.numel() == 0 ? 0.0 : x.abs().max().item<double>(); }

// The criterion of DESIGN section 7: CHECK(as_accurate_as(fast, twin, truth)). `fast` and `twin` have one type, `truth` is
// float64; all have one shape (another one fails). Use at least 10^4 elements or 20 seeds.
inline Accuracy as_accurate_as(const at::Tensor& fast, const at::Tensor& twin, const at::Tensor& truth) {
  if (!fast.defined() || !twin.defined() || !truth.defined() || fast.sizes() != truth.sizes() || twin.sizes() != truth.sizes() ||
      fast.scalar_type() != twin.scalar_type() || truth.scalar_type() != at::kDouble) {
    return {NAN, NAN, NAN};
  }
  const at::Tensor t = truth.detach();
  const double size = largest(t);
  const double unit = size == 0 ? 1 : size;
  Accuracy a;
  a.fast = largest(fast.detach().to(at::kDouble) - t) / unit;
  a.twin = largest(twin.detach().to(at::kDouble) - t) / unit;
  a.allowed = 2 * a.twin + 4 * ulp(size, fast.scalar_type()) / unit;
  return a;
}

// Gradients of sum(f(inputs) * cotangent) for the inputs that require one (undefined where it did not reach one).
inline std::vector<at::Tensor> gradients(const at::Tensor& output, const at::Tensor& cotangent,
                                         const std::vector<at::Tensor>& inputs) {
  return torch::autograd::grad({output}, inputs, {cotangent}, /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                               /*allow_unused=*/true);
}

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

// The numeric criterion for a function of `inputs` (each in its own type) and for the gradients of all of them: `fast` against
// `twin`, the truth being `twin` of the same numbers in float64. A strided input stays strided.
inline void check_against_twin(const Function& fast, const Function& twin, const std::vector<at::Tensor>& inputs,
                               uint64_t key = 1) {
  at::Tensor cotangent;
  const auto pass = [&](const Function& f, bool in_double) {
    std::vector<at::Tensor> leaves;
    for (const auto& input : inputs) leaves.push_back((in_double ? input.to(at::kDouble) : input).detach().requires_grad_(true));
    std::vector<at::Tensor> results{f(leaves)};
    if (!cotangent.defined()) {
      cotangent = random_tensor(results[0].sizes(), key_of(key, "cotangent"), results[0].scalar_type());
    }
    for (const auto& g : gradients(results[0], cotangent.to(results[0].scalar_type()), leaves)) results.push_back(g);
    return results;
  };
  const auto quick = pass(fast, false), plain = pass(twin, false), truth = pass(twin, true);
  for (size_t i = 0; i < truth.size(); ++i) {
    INFO((i == 0 ? std::string("output") : "gradient of input " + std::to_string(i - 1)));
    CHECK(as_accurate_as(quick[i], plain[i], truth[i]));
  }
}

// Largest |finite difference - autograd| / largest |autograd| over all inputs (float64, few elements). The five-point formula
// at h = eps^(1/5) has truncation and rounding errors near 1e-12 of the function's size, and a wrong gradient is wrong in
// its first digits, so CHECK(gradient_error(...) < 1e-7) decides between them with room on both sides. `f` must be
// smooth within 2e-3 of the inputs.
inline double gradient_error(const Function& f, const std::vector<at::Tensor>& inputs, uint64_t key = 1) {
  std::vector<at::Tensor> leaves;
  for (const auto& input : inputs) leaves.push_back(input.detach().clone().set_requires_grad(true));
  const at::Tensor output = f(leaves);
  const at::Tensor cotangent = random_tensor(output.sizes(), key_of(key, "cotangent"), at::kDouble);
  const auto exact = gradients(output, cotangent, leaves);

  at::NoGradGuard no_gradient;
  const double h = std::pow(2.2e-16, 0.2);
  double error = 0, size = 0;
  for (size_t n = 0; n < leaves.size(); ++n) {
    std::vector<at::Tensor> moved = inputs;
    moved[n] = inputs[n].detach().clone();
    double* value = moved[n].data_ptr<double>();
    const at::Tensor expected = exact[n].defined() ? exact[n].contiguous() : at::zeros_like(moved[n]);
    for (int64_t i = 0; i < moved[n].numel(); ++i) {
      const double old = value[i];
      const auto at_offset = [&](double offset) {
        value[i] = old + offset;
        return (f(moved) * cotangent).sum().item<double>();
      };
      const double slope = (8 * (at_offset(h) - at_offset(-h)) - (at_offset(2 * h) - at_offset(-2 * h))) / (12 * h);
      value[i] = old;
      const double difference = std::abs(slope - expected.data_ptr<double>()[i]);
      error = difference > error || std::isnan(difference) ? difference : error;
    }
    size = std::max(size, largest(expected));
  }
  return size == 0 ? error : error / size;
}

}  // namespace quell::testing
