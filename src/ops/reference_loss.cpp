// The twin of output_loss, in plain operations over the scored rows. N rows, V vocabulary.
#include <limits>

#include "base/error.h"
#include "ops/reference.h"

namespace quell::ops::reference {
namespace {

// Sums of thousands of rows lose digits in fp32.
at::Tensor total(const at::Tensor& rows_N) { return rows_N.sum(at::kDouble).to(rows_N.scalar_type()); }

}  // namespace

LossSums output_loss(const at::Tensor& logits_NV, const at::Tensor& targets_N, const LossOptions& options) {
  const at::Tensor scored = at::nonzero(targets_N != ignored_target).squeeze(1);
  const at::Tensor raw_NV = logits_NV.index_select(0, scored);
  const at::Tensor target_N1 = targets_N.index_select(0, scored).unsqueeze(1);
  at::Tensor x_NV = raw_NV.scalar_type() == at::kDouble ? raw_NV : raw_NV.to(at::kFloat);
  if (options.softcap) x_NV = *options.softcap * at::tanh(x_NV / *options.softcap);

  const at::Tensor lse_N = at::logsumexp(x_NV, 1);
  // Before the cap, which may round different logits to equal ones.
  const at::Tensor largest_N1 = raw_NV.detach().argmax(1, /*keepdim=*/true);
  at::Tensor ce_N = options.kind == LossKind::sigmoid ? at::softplus(x_NV).sum(1) : lse_N;
  ce_N = ce_N - (1 - options.label_smoothing) * x_NV.gather(1, target_N1).squeeze(1);
  if (options.label_smoothing != 0) ce_N = ce_N - options.label_smoothing * x_NV.mean(1);

  LossSums sums;
  sums.objective = total(ce_N);
  sums.cross_entropy = sums.objective.detach();
  if (options.z != 0) {
    const at::Tensor z = options.z * total(lse_N.square());
    sums.objective = sums.objective + z;
    sums.z = z.detach();
  }
  if (options.max_z != 0) {
    const at::Tensor max_z = options.max_z * total(x_NV.gather(1, largest_N1).square());
    sums.objective = sums.objective + max_z;
    sums.max_z = max_z.detach();
  }
  const at::Tensor lse = lse_N.detach(), nothing = lse.new_full({1}, -std::numeric_limits<double>::infinity());
  sums.log_z_sum = total(lse);
  sums.log_z_max = at::cat({nothing, lse}).amax();
  sums.correct = total((largest_N1 == target_N1).to(lse.scalar_type()));
  sums.count = at::full({}, scored.numel(), targets_N.options());
  return sums;
}

}  // namespace quell::ops::reference
