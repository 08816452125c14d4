// Softmax attention with grouped heads: flash attention where it can honour the request, else an explicit path with fp32
// scores (chosen in one predicate, attention_path). Shapes: B batch, T position, H query heads, G
// key/value heads (H a multiple of G), D head width.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

#include "ops/options.h"

namespace quell::ops {

struct AttentionSpec {
  bool causal = true;
  // A query sees the last `window` keys, itself included (causal), or those nearer than `window` (full).
  std::optional<int64_t> window = std::nullopt;
  double scale = 1;               // factor of q . k; a learned scale is multiplied into q before
  std::optional<double> softcap = std::nullopt;  // c * tanh(s / c), after the scale and before the mask
  double dropout = 0;             // of attention weights; 0 in evaluation
  uint64_t dropout_key = 0;
  at::Tensor samples_B;           // with dropout: the mask of sample b is drawn by key_of(dropout_key, samples_B[b])
  at::Tensor documents_BT;        // int64 or undefined: keys of another document are masked
  Kernels kernels = Kernels::automatic;
  bool want_logit_max = false;    // exact maximum of each head's visible logits
};

struct AttentionResult {
  at::Tensor out_BTHD;     // v's type
  // Log-sum-exp of each row's (capped) logits, fp32 (fp64 for fp64), detached.
  at::Tensor lse_BHT;
  at::Tensor logit_max_H;  // with want_logit_max, detached
};

enum class AttentionPath { flash, explicit_scores };
// Which path honours this request, and why not flash ("soft-cap", "float64", ...; "" for flash). Throws UsageError for
// kernels: fused where flash cannot.
AttentionPath attention_path(const AttentionSpec& spec, at::ScalarType type, std::string* reason = nullptr,
                             at::DeviceType device = at::kCPU);

AttentionResult attention(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& v_BTGD,
                          const AttentionSpec& spec);

// Entropy of each attention row in nats, before dropout, [B, H, T], fp32 (fp64 for fp64), within [0, log of the visible
// keys]: without the score matrix by a second attention call with v := k, which gives E[k], and H = LSE - scale * q .
// E[k]. With soft-cap (where the logits are not linear in k) the explicit path computes it from the scores. No
// gradient.
at::Tensor attention_entropy(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const AttentionSpec& spec);

// Which keys (columns) a query (row) sees: bool [T, T], or [B, 1, T, T] with documents. How many: fp32 [T] or [B, 1,
// T].
at::Tensor visible_pairs(const AttentionSpec& spec, int64_t length, at::Device device);
at::Tensor visible_keys(const AttentionSpec& spec, int64_t length, at::Device device);

}  // namespace quell::ops
