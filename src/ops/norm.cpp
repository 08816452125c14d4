// See the header. Here: shapes, types, threads and what is saved; the arithmetic is in norm_cpu.cpp. The weight's gradient is
// summed in pieces whose number follows from the shape alone, combined in order: it does not depend on the thread count.
#include "ops/norm.h"

#include <algorithm>

#include "base/error.h"
#include "ops/bound_gradient.h"
#include "ops/choose.h"
#include "ops/isa.h"
#include "ops/layout.h"
#include "ops/reference.h"

namespace quell::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t elements_a_task = 32768, elements_a_piece = 16384, most_pieces = 64, rows_a_sum = 16;

struct Plan {
  NormStatistics statistics;
  NormRounding rounding;
  float eps;
  bool zero_centered;
};

Plan plan_of(const NormSpec& spec, const at::Tensor& weight) {
  const bool centred = spec.kind == NormKind::layernorm && spec.center;
  Plan plan{spec.kind == NormKind::l2 ? NormStatistics::l2 : centred ? NormStatistics::centred : NormStatistics::plain,
            NormRounding::once, static_cast<float>(spec.eps), spec.zero_centered};
  if (spec.cast == CastOrder::none) plan.rounding = NormRounding::everywhere;
  if (spec.cast == CastOrder::cast_then_weight) {
    // A bf16 weight makes the product bf16 before the bias is added; an fp32 master does not.
    const bool narrow = weight.defined() && weight.scalar_type() == at::kBFloat16 && !spec.zero_centered;
    plan.rounding = narrow ? NormRounding::product : NormRounding::normalised;
  }
  return plan;
}

// The factor or bias in fp32 as the kernel takes it, rounded to x's type first where everything is.
at::Tensor widened(const at::Tensor& parameter, bool plus_one, const Plan& plan, at::ScalarType storage) {
  if (!parameter.defined()) return {};
  at::Tensor wide = parameter.to(at::kFloat);
  if (plus_one) wide = wide + 1;
  if (plan.rounding == NormRounding::everywhere) wide = wide.to(storage).to(at::kFloat);
  return wide.contiguous();
}

const float* pointer(const at::Tensor& x) { return x.defined() ? x.const_data_ptr<float>() : nullptr; }

// Heads where a parameter is [H, D], else 0.
int64_t heads_of(const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor& given = weight.defined() ? weight : bias;
  return given.defined() && given.dim() == 2 ? given.size(0) : 0;
}

int64_t pieces_of(int64_t rows, int64_t width) {
  return std::clamp<int64_t>(rows * width / elements_a_piece, 1, std::min(rows, most_pieces));
}

// Gradients of a parameter, in fp64, one sum a piece of the rows.
class ParameterSums {
 public:
  ParameterSums(bool wanted, int64_t pieces, int64_t width) : width_(width) {
    if (wanted) pieces_ = at::zeros({std::max<int64_t>(pieces, 1), width}, at::kDouble);
  }
  size_t part_size() const { return pieces_.defined() ? static_cast<size_t>(width_) : 0; }
  void fold(const NormKernels& kernels, std::vector<float>& part, int64_t piece) {
    if (!part.empty()) kernels.fold(part.data(), pieces_.data_ptr<double>() + piece * width_, width_);
  }
  // The sum of the pieces, in order, in fp32.
  at::Tensor combined() {
    double* sum = pieces_.data_ptr<double>();
    for (int64_t p = 1; p < pieces_.size(0); ++p) {
      for (int64_t j = 0; j < width_; ++j) sum[j] += sum[p * width_ + j];
    }
    return pieces_[0].to(at::kFloat);
  }

 private:
  at::Tensor pieces_;
  int64_t width_;
};

struct Norm : torch::autograd::Function<Norm> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& input, const std::optional<at::Tensor>& given_weight,
                            const std::optional<at::Tensor>& given_bias, const Plan& plan) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    at::Tensor x = input;
    const at::Tensor weight = given_weight.value_or(at::Tensor()), bias = given_bias.value_or(at::Tensor());
    const int64_t width = x.size(-1), heads = heads_of(weight, bias);
    const Rows rows = rows_of(x, heads);
    at::Tensor y = at::empty(x.sizes(), x.options());
    const auto numbers = x.options().dtype(at::kFloat);
    const at::Tensor size = at::empty({rows.count}, numbers);
    const at::Tensor mean = plan.statistics == NormStatistics::centred ? at::empty({rows.count}, numbers) : at::Tensor();
    const at::Tensor factor = widened(weight, plan.zero_centered, plan, x.scalar_type());
    const at::Tensor shift = widened(bias, false, plan, x.scalar_type());
    const NormForward arguments{
        x.const_data_ptr(), rows, width, pointer(factor), pointer(shift), heads > 0 ? width : 0, plan.statistics,
        plan.rounding, plan.eps, y.mutable_data_ptr(), size.mutable_data_ptr<float>(),
        mean.defined() ? mean.mutable_data_ptr<float>() : nullptr};
    const bool bf16 = x.scalar_type() == at::kBFloat16;
    at::parallel_for(0, rows.count, std::max<int64_t>(1, elements_a_task / width), [&](int64_t begin, int64_t end) {
      cpu_kernels().norm.forward(arguments, bf16, begin, end);
    });
    ctx->save_for_backward({x, weight, bias, size, mean});
    ctx->saved_data["statistics"] = static_cast<int64_t>(plan.statistics);
    ctx->saved_data["zero_centered"] = plan.zero_centered;
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    if (!gradients[0].defined()) return {{}, {}, {}, {}};
    at::AutoGradMode off(false);
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &weight = saved[1], &bias = saved[2];
    at::Tensor x = saved[0], dy = gradients[0];
    const int64_t width = x.size(-1), heads = heads_of(weight, bias), parameter = std::max<int64_t>(heads, 1) * width;
    Rows x_rows = rows_of(x, heads), dy_rows = rows_of(dy, heads);
    if (dy_rows.inner_count != x_rows.inner_count) {
      dy = dy.contiguous();
      dy_rows = dense_rows(x_rows.count, width, x_rows.inner_count);
    }
    Plan plan{static_cast<NormStatistics>(ctx->saved_data["statistics"].toInt()), NormRounding::once, 0,
              ctx->saved_data["zero_centered"].toBool()};
    const at::Tensor factor = widened(weight, plan.zero_centered, plan, x.scalar_type());
    at::Tensor dx = at::empty(x.sizes(), x.options());
    const NormBackward arguments{x.const_data_ptr(), dy.const_data_ptr(), x_rows, dy_rows, width, pointer(factor),
                                 heads > 0 ? width : 0, plan.statistics, pointer(saved[3]), pointer(saved[4]),
                                 dx.mutable_data_ptr()};
    const int64_t pieces = x_rows.count == 0 ? 0 : pieces_of(x_rows.count, width);
    // Undefined inputs have no edge of their own.
    const bool want_factor = weight.defined() && ctx->needs_input_grad(1);
    const bool want_bias = bias.defined() && ctx->needs_input_grad(weight.defined() ? 2 : 1);
    ParameterSums d_factor(want_factor, pieces, parameter), d_bias(want_bias, pieces, parameter);
    at::parallel_for(0, pieces, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) run_piece(arguments, x.scalar_type() == at::kBFloat16, p, pieces, d_factor, d_bias);
    });
    return {dx, want_factor ? deliver_gradient(weight, d_factor.combined().view(weight.sizes())) : at::Tensor(),
            want_bias ? deliver_gradient(bias, d_bias.combined().view(bias.sizes())) : at::Tensor(), {}};
  }

  static void run_piece(const NormBackward& arguments, bool bf16, int64_t piece, int64_t pieces, ParameterSums& d_factor,
                        ParameterSums& d_bias) {
    const NormKernels& kernels = cpu_kernels().norm;
    const int64_t rows = arguments.x_rows.count, end = rows * (piece + 1) / pieces;
    const int64_t step = rows_a_sum * (arguments.factor_stride > 0 ? arguments.x_rows.inner_count : 1);
    std::vector<float> factor_part(d_factor.part_size()), bias_part(d_bias.part_size());
    for (int64_t row = rows * piece / pieces; row < end; row += step) {
      kernels.backward(arguments, bf16, row, std::min(row + step, end), factor_part.empty() ? nullptr : factor_part.data(),
                       bias_part.empty() ? nullptr : bias_part.data());
      d_factor.fold(kernels, factor_part, piece);
      d_bias.fold(kernels, bias_part, piece);
    }
  }
};

void check_parameter(const at::Tensor& x, const at::Tensor& parameter) {
  if (!parameter.defined()) return;
  const bool fits = parameter.dim() == 1 ? parameter.size(0) == x.size(-1)
                                         : parameter.dim() == 2 && x.dim() >= 2 && parameter.size(0) == x.size(-2) &&
                                               parameter.size(1) == x.size(-1);
  require(fits, "norm: weight or bias is neither [D] nor [H, D] of x [..., H, D]");
}

}  // namespace

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const NormSpec& spec) {
  if (spec.kind == NormKind::none) return x;
  require(x.dim() >= 1 && x.size(-1) > 0, "norm: x has no last dimension");
  check_parameter(x, weight);
  check_parameter(x, bias);
  require(!weight.defined() || !bias.defined() || weight.sizes() == bias.sizes(), "norm: weight and bias differ in shape");
  if (runs_twin(spec.kernels, x, "norm")) return reference::norm(x, weight, bias, spec);
  return Norm::apply(x, std::optional(weight), std::optional(bias), plan_of(spec, weight));
}

}  // namespace quell::ops
