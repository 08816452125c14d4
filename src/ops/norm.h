// LayerNorm, RMSNorm and L2 normalisation over the last dimension, as an autograd function of our own with explicit eps and
// rounding order (LibTorch's rms_norm changed both between versions, and has no fused CPU backward).
//   layernorm  n = (x - mean) * r, r = 1/sqrt(mean((x - mean)^2) + eps); without `center` the mean is not subtracted
//   rmsnorm    n = x * r,          r = 1/sqrt(mean(x^2) + eps)
//   l2         n = x * r,          r = 1/max(sqrt(sum(x^2)), eps)
//   y = n * (weight or 1 + weight) + bias
// Statistics in fp32 (fp64 for fp64). Saves x and one or two numbers a row; dx and the weight's gradient accumulate in fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/options.h"

namespace quell::ops {

struct NormSpec {
  NormKind kind = NormKind::rmsnorm;
  bool center = true;         // layernorm only
  bool zero_centered = false; // factor 1 + weight
  double eps = 1e-6;
  CastOrder cast = CastOrder::weight_then_cast;
  Kernels kernels = Kernels::automatic;
};

// x [..., D] in fp32, bf16 or fp64; weight and bias undefined, [D], or [H, D] where x is [..., H, D] (one row a head); they are
// fp32 masters (fp64 for fp64 x), or have x's type. Returns x's type and shape. Throws Bug on shapes that do not fit.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const NormSpec& spec);

}  // namespace quell::ops
