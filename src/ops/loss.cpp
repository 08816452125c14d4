// See the header. Here: shapes, types, threads, and the sums over rows, in their order and in fp64 whatever the number
// of threads; the arithmetic along a row is in loss_cpu.cpp. N rows, V vocabulary.
#include "ops/loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/choose.h"
#include "ops/isa.h"
#include "ops/reference.h"

namespace quell::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t elements_a_task = 16384;

template <class Kernel>
void run(Kernel kernel, const LossRows& rows, int64_t count) {
  const int64_t grain = std::max<int64_t>(1, elements_a_task / rows.vocabulary);
  at::parallel_for(0, count, grain, [&](int64_t begin, int64_t end) { kernel(rows, begin, end); });
}

// What the forward pass leaves of each row: four numbers and a place.
struct Statistics {
  at::Tensor numbers_4N, argmax_N;
};

LossRows described(const at::Tensor& logits_NV, const at::Tensor& targets_N, const LossOptions& options,
                   const Statistics& statistics) {
  double* const numbers = statistics.numbers_4N.data_ptr<double>();
  const int64_t rows = logits_NV.size(0);
  return {.bf16 = logits_NV.scalar_type() == at::kBFloat16,
          .vocabulary = logits_NV.size(1),
          .row_stride = logits_NV.stride(0),
          .logits = logits_NV.data_ptr(),
          .targets = targets_N.const_data_ptr<int64_t>(),
          .softcap = options.softcap.value_or(0),
          .label_smoothing = options.label_smoothing,
          .z = options.z,
          .max_z = options.max_z,
          .largest = numbers,
          .sum = numbers + rows,
          .target_logit = numbers + 2 * rows,
          .total = numbers + 3 * rows,
          .argmax = statistics.argmax_N.data_ptr<int64_t>(),
          .gradient = 0};
}

struct Totals {
  double cross_entropy = 0, z = 0, max_z = 0, log_z_sum = 0;
  double log_z_max = -std::numeric_limits<double>::infinity();
  int64_t correct = 0, count = 0;
};

Totals add_up(const LossRows& rows, int64_t count) {
  Totals t;
  for (int64_t i = 0; i < count; ++i) {
    if (rows.targets[i] < 0) continue;
    const double log_sum = std::log(rows.sum[i]), largest = rows.largest[i], lse = largest + log_sum;
    // Around the largest logit, so that two large numbers are not subtracted.
    double ce = log_sum + (1 - rows.label_smoothing) * (largest - rows.target_logit[i]);
    if (rows.label_smoothing != 0) {
      ce += rows.label_smoothing * (largest - rows.total[i] / static_cast<double>(rows.vocabulary));
    }
    t.cross_entropy += ce;
    t.z += lse * lse;
    t.max_z += largest * largest;
    t.log_z_sum += lse;
    t.log_z_max = std::isnan(lse) || lse > t.log_z_max ? lse : t.log_z_max;
    t.correct += rows.argmax[i] == rows.targets[i];
    ++t.count;
  }
  return t;
}

LossSums as_tensors(const Totals& t, const LossOptions& options) {
  const auto scalar = [](double x) { return at::scalar_tensor(x, at::kFloat); };
  LossSums sums;
  double objective = t.cross_entropy;
  sums.cross_entropy = scalar(t.cross_entropy);
  if (options.z != 0) {
    sums.z = scalar(options.z * t.z);
    objective += options.z * t.z;
  }
  if (options.max_z != 0) {
    sums.max_z = scalar(options.max_z * t.max_z);
    objective += options.max_z * t.max_z;
  }
  sums.objective = scalar(objective);
  sums.log_z_sum = scalar(t.log_z_sum);
  sums.log_z_max = scalar(t.log_z_max);
  sums.correct = scalar(static_cast<double>(t.correct));
  sums.count = at::scalar_tensor(t.count, at::kLong);
  return sums;
}

struct OutputLoss : torch::autograd::Function<OutputLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits_NV, const at::Tensor& targets_N,
                            const LossOptions& options, LossSums& sums) {
    at::AutoDispatchBelowADInplaceOrView below;
    const int64_t count = logits_NV.size(0);
    const Statistics statistics{at::empty({4, count}, at::kDouble), at::empty({count}, at::kLong)};
    const LossRows rows = described(logits_NV, targets_N, options, statistics);
    run(cpu_kernels().loss.forward, rows, count);
    sums = as_tensors(add_up(rows, count), options);
    ctx->save_for_backward({logits_NV, targets_N, statistics.numbers_4N, statistics.argmax_N});
    ctx->saved_data["softcap"] = options.softcap;
    ctx->saved_data["label_smoothing"] = options.label_smoothing;
    ctx->saved_data["z"] = options.z;
    ctx->saved_data["max_z"] = options.max_z;
    ctx->saved_data["spent"] = false;
    return sums.objective;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    require(!ctx->saved_data["spent"].toBool(), "output_loss: the logits' memory holds their gradient already");
    ctx->saved_data["spent"] = true;
    at::AutoGradMode off(false);
    const auto saved = ctx->get_saved_variables();
    LossOptions options;
    options.softcap = ctx->saved_data["softcap"].toOptional<double>();
    options.label_smoothing = ctx->saved_data["label_smoothing"].toDouble();
    options.z = ctx->saved_data["z"].toDouble();
    options.max_z = ctx->saved_data["max_z"].toDouble();
    LossRows rows = described(saved[0], saved[1], options, {saved[2], saved[3]});
    rows.gradient = gradients[0].item<double>();
    run(cpu_kernels().loss.backward, rows, saved[0].size(0));
    return {saved[0].detach(), {}, {}, {}};
  }
};

void require_fitting(const at::Tensor& logits_NV, const at::Tensor& targets_N) {
  require(logits_NV.dim() == 2 && targets_N.dim() == 1 && targets_N.scalar_type() == at::kLong,
          "output_loss: wants logits [N, V] and int64 targets [N]");
  require(logits_NV.size(0) == targets_N.size(0) && logits_NV.size(1) > 0,
          "output_loss: logits and targets do not fit");
  if (!targets_N.is_cpu()) return;
  const at::Tensor targets = targets_N.contiguous();
  const int64_t* const target = targets.const_data_ptr<int64_t>();
  const auto is_known = [&](int64_t t) { return t >= ignored_target && t < logits_NV.size(1); };
  require(std::all_of(target, target + targets.numel(), is_known), "output_loss: a target outside the vocabulary");
}

}  // namespace

namespace {

at::Tensor count_top5(const at::Tensor& logits_NV, const at::Tensor& targets_N) {
  at::NoGradGuard no_gradients;
  const at::Tensor scored = targets_N != ignored_target;
  const at::Tensor target_N1 = logits_NV.gather(1, targets_N.clamp_min(0).unsqueeze(1));
  return (logits_NV > target_N1).sum(1).lt(5).logical_and(scored).sum();
}

void count_exact(LossSums& sums, const at::Tensor& logits_NV, const at::Tensor& targets_N, int64_t rows) {
  require(targets_N.size(0) % rows == 0, "output_loss: exact_rows does not divide the rows");
  at::NoGradGuard no_gradients;
  const at::Tensor ignored = (targets_N == ignored_target).view({-1, rows});
  const at::Tensor right = (logits_NV.argmax(1) == targets_N).view({-1, rows});
  const at::Tensor has_target = ignored.logical_not().any(1);
  sums.samples = has_target.sum();
  sums.exact = right.logical_or(ignored).all(1).logical_and(has_target).sum();
}

}  // namespace

LossSums output_loss(const at::Tensor& logits_NV, const at::Tensor& targets_N, const LossOptions& options) {
  if (options.top5 || options.exact_rows > 0) {
    LossOptions rest = options;
    rest.top5 = false;
    rest.exact_rows = 0;
    LossSums sums = output_loss(logits_NV, targets_N, rest);
    if (options.top5) sums.top5 = count_top5(logits_NV, targets_N);
    if (options.exact_rows > 0) count_exact(sums, logits_NV, targets_N, options.exact_rows);
    return sums;
  }
  require_fitting(logits_NV, targets_N);
  // Of classes, of which there are few beside a vocabulary: the plain formula is fast enough.
  if (options.kind == LossKind::sigmoid) return reference::output_loss(logits_NV, targets_N, options);
  if (runs_twin(options.kernels, logits_NV, "output_loss")) {
    return reference::output_loss(logits_NV, targets_N, options);
  }
  const bool rows_lie_apart = logits_NV.stride(1) == 1 && logits_NV.stride(0) >= logits_NV.size(1);
  const at::Tensor rows_NV = rows_lie_apart ? logits_NV : logits_NV.contiguous();
  LossSums sums;
  sums.objective = OutputLoss::apply(rows_NV, targets_N.contiguous(), options, sums);
  return sums;
}

}  // namespace quell::ops
