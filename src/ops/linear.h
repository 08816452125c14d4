// Products with parameters. A parameter's gradient goes straight into its view of the gradient arena (compute.grad(), added in
// place), so no second copy of it ever exists and the graph is handed none; where a weight has no gradient tensor bound, it is
// returned the usual way. For a bf16 weight LibTorch's CPU product gives bf16, accumulated in fp32 and rounded once, which is then
// added to the fp32 gradient.
// Shapes: C width in, N width out, V vocabulary.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/options.h"

namespace quell::ops {

// x [..., C] times weight [N, C] transposed, plus bias [N] where defined. x and weight have one type (fp32, bf16, fp64); the
// bias may be an fp32 master. The weight's gradient is accumulated in the type of its bound gradient (fp32 for bf16).
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                  Kernels kernels = Kernels::automatic);

// As linear without bias, for [V, C] output matrices: the result's rows start at multiples of 64 bytes (an odd V otherwise
// halves the speed of the products), so it is a strided view [N, V].
at::Tensor output_logits(const at::Tensor& x_NC, const at::Tensor& weight_VC, Kernels kernels = Kernels::automatic);

// Rows of weight_VC by tokens (int64, any shape): [..., C] in the weight's type.
at::Tensor embedding(const at::Tensor& weight_VC, const at::Tensor& tokens, Kernels kernels = Kernels::automatic);

}  // namespace quell::ops
