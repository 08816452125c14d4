// The twins of norm, rotary and activation. Plain operations in the order in which the formulas are written; nothing here is
// fused or saved by hand. Shapes: B batch, T position, H heads, D head width, R pairs.
#include "ops/reference.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace quell::ops::reference {
namespace {

at::ScalarType wide_type(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat; }

at::Tensor inverse_size(const at::Tensor& x, NormKind kind, double eps) {
  if (kind == NormKind::l2) return at::linalg_vector_norm(x, 2, -1, /*keepdim=*/true).clamp_min(eps).reciprocal();
  return (x.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
}

at::Tensor exact_gelu(const at::Tensor& x) { return 0.5 * x * (1 + at::erf(x * std::numbers::sqrt2 / 2)); }

at::Tensor tanh_gelu(const at::Tensor& x) {
  const double factor = std::sqrt(2 / std::numbers::pi);
  return 0.5 * x * (1 + at::tanh(factor * (x + 0.044715 * x * x * x)));
}

}  // namespace

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const NormSpec& spec) {
  const at::ScalarType storage = x.scalar_type();
  const bool in_storage = spec.cast == CastOrder::none;
  at::Tensor centred = in_storage ? x : x.to(wide_type(x));
  if (spec.kind == NormKind::layernorm && spec.center) centred = centred - centred.mean(-1, /*keepdim=*/true);
  at::Tensor y = centred * inverse_size(centred, spec.kind, spec.eps);

  if (spec.cast == CastOrder::cast_then_weight) y = y.to(storage);
  if (weight.defined()) {
    const at::Tensor factor = spec.zero_centered ? weight.to(wide_type(x)) + 1 : weight;
    y = y * (in_storage ? factor.to(storage) : factor);
  }
  if (bias.defined()) y = y + (in_storage ? bias.to(storage) : bias);
  return y.to(storage);
}

at::Tensor rotate(const at::Tensor& x_BTHD, const at::Tensor& cos_TR, const at::Tensor& sin_TR, RopePairing pairing) {
  const int64_t length = x_BTHD.size(1), pairs = cos_TR.size(1), width = x_BTHD.size(3);
  const at::Tensor cos_T1R = cos_TR.narrow(0, 0, length).unsqueeze(1), sin_T1R = sin_TR.narrow(0, 0, length).unsqueeze(1);
  const at::Tensor turned = x_BTHD.narrow(-1, 0, 2 * pairs).to(wide_type(x_BTHD));

  at::Tensor y;
  if (pairing == RopePairing::halves) {
    const at::Tensor x1 = turned.narrow(-1, 0, pairs), x2 = turned.narrow(-1, pairs, pairs);
    y = at::cat({x1 * cos_T1R - x2 * sin_T1R, x2 * cos_T1R + x1 * sin_T1R}, -1);
  } else {
    const at::Tensor split = turned.unflatten(-1, {pairs, 2}), x1 = split.select(-1, 0), x2 = split.select(-1, 1);
    y = at::stack({x1 * cos_T1R - x2 * sin_T1R, x2 * cos_T1R + x1 * sin_T1R}, -1).flatten(-2);
  }
  y = y.to(x_BTHD.scalar_type());
  return 2 * pairs == width ? y : at::cat({y, x_BTHD.narrow(-1, 2 * pairs, width - 2 * pairs)}, -1);
}

at::Tensor activate(const at::Tensor& x, MlpKind kind) {
  const at::Tensor wide = x.to(wide_type(x));
  switch (kind) {
    case MlpKind::gelu: return exact_gelu(wide).to(x.scalar_type());
    case MlpKind::gelu_tanh: return tanh_gelu(wide).to(x.scalar_type());
    case MlpKind::relu_squared: return at::relu(wide).square().to(x.scalar_type());
    default: throw Bug("activate: a gated kind takes two inputs");
  }
}

at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, MlpKind kind) {
  const at::Tensor g = gate.to(wide_type(gate)), u = up.to(wide_type(up));
  switch (kind) {
    case MlpKind::swiglu: return (g * at::sigmoid(g) * u).to(gate.scalar_type());
    case MlpKind::geglu: return (exact_gelu(g) * u).to(gate.scalar_type());
    case MlpKind::geglu_tanh: return (tanh_gelu(g) * u).to(gate.scalar_type());
    default: throw Bug("gated: this kind takes one input");
  }
}

}  // namespace quell::ops::reference
