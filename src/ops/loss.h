// Losses on output logits: cross entropy with ignored targets and label smoothing, z-loss and max-z loss. Everything is a SUM
// over the scored targets with their count beside it; means are taken from global sums and counts by the caller.
//   ce       = lse - (1 - s) * logit[target] - s * mean(logits)         (s: label smoothing)
//   z term   = z * lse^2                                                 (PaLM)
//   max-z    = max_z * (largest logit)^2                                 (Baichuan 2; the gradient goes to the largest logit)
// or, with kind sigmoid and targets t = 1 - s + s/V for the target's class and s/V for the others,
//   ce       = sum over classes of softplus(logit) - t * logit
// with logits soft-capped first where asked: c * tanh(x / c). Computed in fp32 (fp64 for fp64). A coefficient of 0 removes its
// term: the result is equal in every bit to no term.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "ops/options.h"

namespace quell::ops {

inline constexpr int64_t ignored_target = -1;

struct LossOptions {
  LossKind kind = LossKind::softmax;
  double label_smoothing = 0;
  double z = 0;
  double max_z = 0;
  std::optional<double> softcap = std::nullopt;
  bool top5 = false;  // count the targets among the five largest logits
  int64_t exact_rows = 0;  // count the samples, of so many rows each, whose scored targets are all right; 0: do not
  Kernels kernels = Kernels::automatic;
};

// Scalars in fp32 (fp64 for fp64), on the logits' device. Only `objective` carries a gradient.
struct LossSums {
  at::Tensor objective;    // what is minimised: cross entropy and auxiliary terms
  at::Tensor cross_entropy, z, max_z;  // the parts as added (the last two undefined where their coefficient is 0)
  at::Tensor log_z_sum, log_z_max;
  at::Tensor correct;      // targets that are the largest logit (the first of equal ones)
  at::Tensor top5;         // targets that fewer than five logits exceed; undefined where not asked for
  at::Tensor count;        // scored targets, int64
  // Samples that have a scored target, and those among them whose scored targets are all the largest logit; undefined where not
  // asked for.
  at::Tensor samples, exact;
};

// logits_NV fp32, bf16 or fp64, rows may be strided; targets_N int64 with ignored_target for rows not scored. The fused path
// reuses the logits' memory for their gradient: nobody else may need them after backward.
LossSums output_loss(const at::Tensor& logits_NV, const at::Tensor& targets_N, const LossOptions& options);

}  // namespace quell::ops
