#include "nn/presets.h"

#include <cmath>

namespace quell {
namespace {

QkNormOptions rms(double eps, CastOrder cast, RopeOrder rope = RopeOrder::before) {
  QkNormOptions o;
  o.kind = NormKind::rmsnorm;
  o.eps = eps;
  o.cast = cast;
  o.rope = rope;
  return o;
}

QkNormOptions layer(double eps, NormWeight weight, bool bias) {
  QkNormOptions o;
  o.kind = NormKind::layernorm;
  o.eps = eps;
  o.weight = weight;
  o.bias = bias;
  return o;
}

QkNormOptions l2(double eps) {
  QkNormOptions o;
  o.kind = NormKind::l2;
  o.weight = NormWeight::none;
  o.eps = eps;
  return o;
}

ScaleOptions constant(double value) {
  ScaleOptions scale;
  scale.kind = ScaleKind::constant;
  scale.value = value;
  return scale;
}

ScaleOptions learned(bool per_head, ScaleForm form) {
  ScaleOptions scale;
  scale.kind = ScaleKind::learned;
  scale.per_head = per_head;
  scale.form = form;
  return scale;
}

QkNormOptions whole_projection(QkNormOptions o) {
  o.axis = NormAxis::projection;
  o.weight = NormWeight::projection;
  return o;
}

QkNormOptions weightless(QkNormOptions o) {
  o.weight = NormWeight::none;
  return o;
}

}  // namespace

void apply_preset(Preset preset, int64_t head_width, QkNormOptions& qk_norm, ScaleOptions& scale) {
  using enum CastOrder;
  const double root = std::sqrt(static_cast<double>(head_width));
  scale = {};
  switch (preset) {
    case Preset::qwen3: qk_norm = rms(1e-6, cast_then_weight); break;
    case Preset::olmo2: qk_norm = whole_projection(rms(1e-6, weight_then_cast)); break;
    case Preset::gemma3:
      qk_norm = rms(1e-6, weight_then_cast);
      qk_norm.zero_centered = true;
      break;
    case Preset::cohere: qk_norm = layer(1e-5, NormWeight::per_head, false); break;
    case Preset::stablelm2: qk_norm = layer(1e-5, NormWeight::per_head, false); break;
    case Preset::chameleon:
      qk_norm = layer(1e-5, NormWeight::per_head, true);
      qk_norm.cast = cast_then_weight;
      break;
    case Preset::persimmon: qk_norm = layer(1e-5, NormWeight::shared, true); break;
    case Preset::hunyuan: qk_norm = rms(1e-5, cast_then_weight, RopeOrder::after); break;
    case Preset::minimax_m2: qk_norm = whole_projection(rms(1e-6, cast_then_weight)); break;
    case Preset::llama4: qk_norm = weightless(rms(1e-5, weight_then_cast, RopeOrder::after)); break;
    case Preset::nanochat:
      qk_norm = weightless(rms(1e-6, weight_then_cast, RopeOrder::after));
      scale = constant(1.44 / root);
      break;
    case Preset::timm: qk_norm = layer(1e-6, NormWeight::shared, true); break;
    case Preset::vit22b: qk_norm = layer(1e-6, NormWeight::shared, false); break;
    case Preset::swinv2:
      qk_norm = l2(1e-12);
      scale = learned(true, ScaleForm::exp);
      scale.init = 10;
      scale.max = 100;
      break;
    case Preset::henry2020:
      qk_norm = l2(1e-12);
      scale = learned(false, ScaleForm::linear);  // starts at log2(L^2 - L): the user gives scale.length
      break;
    case Preset::ngpt:
      qk_norm = l2(0);
      qk_norm.weight = NormWeight::per_head;
      qk_norm.tie_qk = true;
      qk_norm.rope = RopeOrder::after;
      scale = constant(root);
      break;
  }
}

Optional<double> preset_qk_norm_decay(Preset preset) {
  if (preset == Preset::olmo2) return 0.1;
  return std::nullopt;
}

}  // namespace quell
