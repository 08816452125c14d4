// Softmax attention without a matrix of scores, as an autograd function over our CPU kernels. fp32 and bf16 storage, fp32
// arithmetic; no soft-cap, no dropout. Shapes as in ops/attention.h.
#pragma once

#include "ops/attention.h"

namespace quell::ops {

// out in v's type; lse and logit_max fp32. Differentiable once, with respect to q, k and v. The result does not depend on the
// number of threads.
AttentionResult flash_attention(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& v_BTGD,
                                const AttentionSpec& spec);

}  // namespace quell::ops
