// The MLP's non-linearities. Computed in fp32 for bf16 input; the gated ones recompute in backward instead of keeping the
// activation.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/options.h"

namespace quell::ops {

at::Tensor activate(const at::Tensor& x, MlpKind kind, Kernels kernels = Kernels::automatic);  // gelu, gelu_tanh, relu_squared
at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, MlpKind kind, Kernels kernels = Kernels::automatic);

// x with elements dropped by a counter-based mask (tensors/fill.h); x itself for probability 0.
at::Tensor dropout(const at::Tensor& x, double probability, uint64_t key);

}  // namespace quell::ops
