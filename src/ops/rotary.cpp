// See the header. The rotation's backward is the rotation by the opposite angle.
#include "ops/rotary.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "ops/choose.h"
#include "ops/isa.h"
#include "ops/reference.h"

namespace quell::ops {
namespace {

// The frequency of one pair after scaling. llama3 (Llama 3.1): wavelengths above original / low are stretched by factor, those
// below original / high stay, and between the two the frequency is interpolated.
double scaled(double frequency, const RopeScaling& s) {
  switch (s.kind) {
    case RopeScalingKind::none: return frequency;
    case RopeScalingKind::linear: return frequency / s.factor;
    case RopeScalingKind::llama3: break;
  }
  const double turns = static_cast<double>(s.original) * frequency / (2 * std::numbers::pi);
  if (turns < s.low) return frequency / s.factor;
  if (turns > s.high) return frequency;
  const double kept = (turns - s.low) / (s.high - s.low);
  return (1 - kept) * frequency / s.factor + kept * frequency;
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t elements_a_task = 32768;

// x_BTHD turned by the table's angles (direction 1) or by their negatives (-1).
at::Tensor turned(at::Tensor x_BTHD, const at::Tensor& cos_TR, const at::Tensor& sin_TR, bool interleaved, float direction) {
  if (x_BTHD.stride(3) != 1) x_BTHD = x_BTHD.contiguous();
  at::Tensor y_BTHD = at::empty(x_BTHD.sizes(), x_BTHD.options());
  const int64_t rows = x_BTHD.size(0) * x_BTHD.size(1), elements = x_BTHD.size(2) * x_BTHD.size(3);
  const RotaryRows arguments{
      x_BTHD.const_data_ptr(), y_BTHD.mutable_data_ptr(), cos_TR.const_data_ptr<float>(), sin_TR.const_data_ptr<float>(),
      x_BTHD.size(1), x_BTHD.size(2), x_BTHD.size(3), cos_TR.size(1),
      x_BTHD.stride(0), x_BTHD.stride(1), x_BTHD.stride(2),
      x_BTHD.scalar_type() == at::kBFloat16, interleaved, direction};
  const int64_t grain = std::max<int64_t>(1, elements_a_task / std::max<int64_t>(1, elements));
  at::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) { cpu_kernels().rotary.rotate(arguments, begin, end); });
  return y_BTHD;
}

struct Rotate : torch::autograd::Function<Rotate> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_BTHD, const at::Tensor& cos_TR, const at::Tensor& sin_TR,
                            bool interleaved) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({cos_TR, sin_TR});
    ctx->saved_data["interleaved"] = interleaved;
    return turned(x_BTHD, cos_TR, sin_TR, interleaved, 1);
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    if (!gradients[0].defined()) return {{}, {}, {}, {}};
    at::AutoGradMode off(false);
    const auto saved = ctx->get_saved_variables();
    return {turned(gradients[0], saved[0], saved[1], ctx->saved_data["interleaved"].toBool(), -1), {}, {}, {}};
  }
};

}  // namespace

RotaryTable rotary_table(const RopeOptions& options, int64_t length, at::ScalarType type, at::Device device) {
  require(options.width > 0 && options.width % 2 == 0, "rotary: the rotated width is not a positive even number");
  const int64_t pairs = options.width / 2;
  at::Tensor cos_TR = at::empty({length, pairs}, at::kDouble), sin_TR = at::empty({length, pairs}, at::kDouble);
  double *cosines = cos_TR.data_ptr<double>(), *sines = sin_TR.data_ptr<double>();
  for (int64_t r = 0; r < pairs; ++r) {
    const double exponent = -2.0 * static_cast<double>(r) / static_cast<double>(options.width);
    const double frequency = scaled(std::pow(options.base, exponent), options.scaling);
    for (int64_t t = 0; t < length; ++t) {
      cosines[t * pairs + r] = std::cos(static_cast<double>(t) * frequency);
      sines[t * pairs + r] = std::sin(static_cast<double>(t) * frequency);
    }
  }
  return {cos_TR.to(device, type), sin_TR.to(device, type)};
}

at::Tensor rotate(const at::Tensor& x_BTHD, const at::Tensor& cos_TR, const at::Tensor& sin_TR, RopePairing pairing,
                  Kernels kernels) {
  require(x_BTHD.dim() == 4 && cos_TR.dim() == 2 && cos_TR.sizes() == sin_TR.sizes(),
          "rotate: x is not [B, T, H, D] or tables differ");
  require(x_BTHD.size(1) <= cos_TR.size(0), "rotate: more positions than the table has");
  require(2 * cos_TR.size(1) <= x_BTHD.size(3), "rotate: the table is wider than a head");
  if (runs_twin(kernels, x_BTHD, "rotate")) return reference::rotate(x_BTHD, cos_TR, sin_TR, pairing);
  require(cos_TR.scalar_type() == at::kFloat && cos_TR.is_contiguous() && sin_TR.is_contiguous(),
          "rotate: tables are not dense fp32");
  return Rotate::apply(x_BTHD, cos_TR, sin_TR, pairing == RopePairing::interleaved);
}

}  // namespace quell::ops
