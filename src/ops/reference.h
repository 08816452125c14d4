// The readable twins: every function of this room written in plain operations that autograd differentiates, valid in fp32, bf16
// and fp64. What QK-norm means is read here; how it is fast stands in norm.h and its kernels. They are the definition that tests
// hold the fast paths against (DESIGN section 7), and what `kernels: reference` and `precision: fp64` run.
//
// Shapes: B batch, T position, H query heads, G key/value heads, D head width, C width, V vocabulary, N rows.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/attention.h"
#include "ops/loss.h"
#include "ops/norm.h"
#include "ops/options.h"

namespace quell::ops::reference {

// As ops::norm.
at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const NormSpec& spec);
// As ops::rotate.
at::Tensor rotate(const at::Tensor& x_BTHD, const at::Tensor& cos_TR, const at::Tensor& sin_TR, RopePairing pairing);
// As ops::attention; explicit scores and softmax in fp32 (fp64 for fp64).
AttentionResult attention(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& v_BTGD, const AttentionSpec& spec);
// As ops::attention_entropy, from the score matrix.
at::Tensor attention_entropy(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const AttentionSpec& spec);
// All weights before dropout: [B, H, T, T], fp32 (fp64 for fp64), 0 where a query does not see a key. No gradient.
at::Tensor attention_matrix(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const AttentionSpec& spec);
// The weight of one key for each query, before dropout: [B, H, T], fp32 (fp64 for fp64), of the keys keys_BT (int64); 0 where that
// is below 0 or the query does not see it. No gradient.
at::Tensor attention_weights(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& keys_BT, const AttentionSpec& spec);
// As ops::output_loss.
LossSums output_loss(const at::Tensor& logits_NV, const at::Tensor& targets_N, const LossOptions& options);
// As ops::gated and ops::activate.
at::Tensor activate(const at::Tensor& x, MlpKind kind);
at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, MlpKind kind);

}  // namespace quell::ops::reference
