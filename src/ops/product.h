// Matrix products without autograd, where ops/linear takes them from: our own kernel for what it is faster at, LibTorch's for the
// rest. Which of the two depends on shapes, strides and types alone.
#pragma once

#include <ATen/core/Tensor.h>

namespace quell::ops {

// x [M, K] times weight [N, K] turned, plus bias [N] where defined -> [M, N], of x's type.
at::Tensor product_turned(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

// g [M, N] times weight [N, K] -> [M, K].
at::Tensor product(const at::Tensor& g, const at::Tensor& weight);

// sum [N, K] += g [M, N] turned times x [M, K]. `sum` is fp32 where g and x are bf16.
void add_outer_products(at::Tensor& sum, const at::Tensor& g, const at::Tensor& x);

}  // namespace quell::ops
