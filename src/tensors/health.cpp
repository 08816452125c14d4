// Combines the health of micro-batches layer by layer.
#include "tensors/health.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace quell {
namespace {

// NaN in either operand stays NaN, so that a broken layer cannot hide behind a healthy micro-batch.
void take_max(at::Tensor& into, const at::Tensor& measured) {
  if (measured.defined()) into = into.defined() ? at::maximum(into, measured) : measured;
}

void take_sum(at::Tensor& into, const at::Tensor& measured) {
  if (measured.defined()) into = into.defined() ? into + measured : measured;
}

}  // namespace

void HealthSums::add(int64_t layer, const LayerHealth& measured) {
  require(layer >= 0, "health: layer below 0");
  at::NoGradGuard no_gradient;
  if (layer >= static_cast<int64_t>(layers.size())) layers.resize(layer + 1);
  LayerHealth& into = layers[layer];
  take_max(into.bound_H, measured.bound_H);
  take_max(into.logit_max_H, measured.logit_max_H);
  take_sum(into.entropy_H, measured.entropy_H);
  take_sum(into.entropy_relative_H, measured.entropy_relative_H);
  into.entropy_rows += measured.entropy_rows;
  take_sum(into.q_square_H, measured.q_square_H);
  take_sum(into.k_square_G, measured.k_square_G);
  into.q_count += measured.q_count;
  into.k_count += measured.k_count;
  take_sum(into.mass_H, measured.mass_H);
  into.mass_rows += measured.mass_rows;
}

}  // namespace quell
