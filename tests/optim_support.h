// What the optimiser's tests share: a small model in an arena, and AdamW written out in elementary operations.
#pragma once

#include <memory>

#include "optim/adamw.h"
#include "support.h"

namespace quell::testing {

// One parameter of each role, two matrices, and a frozen one; values and gradients from a counter.
struct SmallModel {
  ParameterList parameters;
  std::unique_ptr<Arena> arena;

  explicit SmallModel(Precision precision = Precision::fp32, uint64_t seed = 1, int64_t world = 1) {
    int64_t unit = 0;
    for (const Role role : all_roles) parameters.add(name_of(role), role, unit++, {9, 7}, {});
    parameters.add("matrix.large", Role::matrix, 1, {100, 130}, {});
    parameters.add("frozen", Role::matrix, 1, {5, 5}, {})->frozen = true;
    arena = std::make_unique<Arena>(parameters, ArenaOptions{.precision = precision, .world = world});
    for (Parameter& parameter : parameters) set(parameter.value, key_of(seed, parameter.name));
    arena->refresh_compute();
  }

  static void set(const at::Tensor& tensor, uint64_t key) {
    tensor.detach().copy_(random_tensor(tensor.sizes(), key, tensor.scalar_type()));
  }
  at::Tensor gradient(const Parameter& parameter) const { return arena->view(arena->gradients(), parameter); }
  at::Tensor value(const std::string& name) { return parameters.find(name)->value.detach(); }

  void draw_gradients(uint64_t key) {
    for (const Parameter& parameter : parameters) {
      if (!parameter.frozen) set(gradient(parameter), key_of(key, parameter.name));
    }
  }
};

inline at::Tensor no() { return at::scalar_tensor(false, at::kBool); }
inline at::Tensor yes() { return at::scalar_tensor(true, at::kBool); }

// One update with no more than the usual, of its own gradient norm.
inline void update(AdamW& optimizer, double factor = 1) { optimizer.update(factor, optimizer.gradient_norm(), no()); }

// AdamW as its paper writes it, in the type of its tensors.
struct WrittenOut {
  at::Tensor value, first, second;
  int64_t count = 0;
  explicit WrittenOut(const at::Tensor& initial)
      : value(initial.clone()), first(at::zeros_like(initial)), second(at::zeros_like(initial)) {}
  // `shrink` is what is taken from the value by decay: lr * decay, or f * decay.
  void update(const at::Tensor& gradient, double lr, double shrink, const OptimizerConfig& config) {
    const auto [beta1, beta2] = config.betas;
    ++count;
    value = value - shrink * value;
    first = beta1 * first + (1 - beta1) * gradient;
    second = beta2 * second + (1 - beta2) * gradient * gradient;
    const at::Tensor first_hat = first / (1 - std::pow(beta1, count));
    const at::Tensor second_hat = second / (1 - std::pow(beta2, count));
    value = value - lr * first_hat / (second_hat.sqrt() + config.eps);
  }
};

}  // namespace quell::testing
