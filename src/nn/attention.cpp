#include "nn/attention.h"

#include <cmath>

#include "nn/initial.h"
#include "ops/reference.h"

namespace quell {
namespace {

// Sums of squares of each head, for the RMS of q and k before the norm: [B, T, heads, D] -> [heads].
at::Tensor squares(const at::Tensor& x_BTHD) {
  const at::Tensor x = x_BTHD.detach();
  const at::ScalarType type = x.scalar_type() == at::kBFloat16 ? at::kFloat : x.scalar_type();
  return at::linalg_vector_norm(x, 2, at::IntArrayRef{0, 1, 3}, false, type).square();
}

// Entropy of rows that see more than one key (the first of a sequence sees itself only): sums over rows, [H] each.
void add_entropy(LayerHealth& health, const at::Tensor& entropy_BHT, const ops::AttentionSpec& spec) {
  const at::Tensor keys = ops::visible_keys(spec, entropy_BHT.size(2), entropy_BHT.device());  // [T] or [B, 1, T]
  const at::Tensor counted = keys.gt(1).to(entropy_BHT.scalar_type());
  const at::Tensor entropy = entropy_BHT * counted;
  health.entropy_H = entropy.sum(at::IntArrayRef{0, 2});
  health.entropy_relative_H = (entropy / keys.clamp_min(2).log()).sum(at::IntArrayRef{0, 2});
  health.entropy_rows = counted.expand({entropy.size(0), 1, entropy.size(2)}).sum().item<double>();
}

}  // namespace

Attention::Attention(ParameterList& into, const std::string& name, int64_t unit, int64_t layer, const TransformerConfig& model,
                     const VariantConfig& block)
    : layer_(layer),
      heads_(model.heads),
      kv_heads_(model.kv()),
      head_width_(model.head()),
      config_(block.attention),
      rotary_(block.position, model.head()) {
  const Initial matrix = initial_matrix(model, model.width);
  const bool qkv_bias = has_qkv_bias(config_.bias);
  const bool out_bias = has_out_bias(config_.bias);
  q_ = Linear(into, name + ".q", unit, model.width, heads_ * head_width_, qkv_bias, matrix);
  k_ = Linear(into, name + ".k", unit, model.width, kv_heads_ * head_width_, qkv_bias, matrix);
  v_ = Linear(into, name + ".v", unit, model.width, kv_heads_ * head_width_, qkv_bias, matrix);
  const std::string q_name = config_.qk_norm.tie_qk ? ".qk_norm" : ".q_norm";
  q_norm_ = Norm(into, name + q_name, unit, config_.qk_norm, heads_, head_width_);
  k_norm_ = config_.qk_norm.tie_qk ? q_norm_ : Norm(into, name + ".k_norm", unit, config_.qk_norm, kv_heads_, head_width_);
  if (config_.scale.kind == ScaleKind::learned) {
    const double factor = initial_factor(config_.scale, head_width_);
    const double stored = config_.scale.form == ScaleForm::exp ? std::log(factor) : factor;
    scale_ = into.add(name + ".scale", Role::scale, unit, {config_.scale.per_head ? heads_ : 1}, Initial::constant(stored));
  }
  out_ = Linear(into, name + ".out", unit, heads_ * head_width_, model.width, out_bias,
                initial_residual(model, heads_ * head_width_));
}

at::Tensor Attention::learned_factor() const {
  if (scale_ == nullptr) return {};
  if (config_.scale.form == ScaleForm::linear) return scale_->compute;
  at::Tensor stored = scale_->compute;
  if (config_.scale.max) stored = stored.clamp_max(std::log(*config_.scale.max));
  return stored.exp();
}

at::Tensor Attention::scaled(const at::Tensor& q_BTHD) const {
  const at::Tensor factor = learned_factor();
  return factor.defined() ? (q_BTHD * factor.view({-1, 1})).to(q_BTHD.scalar_type()) : q_BTHD;
}

at::Tensor Attention::normed_and_rotated(const Norm& norm, const at::Tensor& x_BTHD, Kernels kernels) const {
  if (config_.qk_norm.axis == NormAxis::projection) return rotary_(x_BTHD, kernels);  // normed before the heads were split
  if (config_.qk_norm.rope == RopeOrder::after) return norm(rotary_(x_BTHD, kernels), kernels);
  return rotary_(norm(x_BTHD, kernels), kernels);
}

Attention::Heads Attention::project(const Forward& forward, const at::Tensor& x_BTC, LayerHealth& health) const {
  const Kernels kernels = forward.kernels;
  at::Tensor q = q_(x_BTC, kernels);
  at::Tensor k = k_(x_BTC, kernels);
  const int64_t batch = x_BTC.size(0), length = x_BTC.size(1);
  const auto split = [&](const at::Tensor& x, int64_t heads) { return x.view({batch, length, heads, head_width_}); };
  if (forward.health && forward.health->bounds) {
    health.q_square_H = squares(split(q, heads_));
    health.k_square_G = squares(split(k, kv_heads_));
    health.q_count = health.k_count = static_cast<double>(batch * length * head_width_);
  }
  if (config_.qk_norm.axis == NormAxis::projection) {
    q = q_norm_(q, kernels);
    k = k_norm_(k, kernels);
  }
  return {scaled(normed_and_rotated(q_norm_, split(q, heads_), kernels)), normed_and_rotated(k_norm_, split(k, kv_heads_), kernels),
          split(v_(x_BTC, kernels), kv_heads_)};
}

ops::AttentionSpec Attention::spec(const Forward& forward) const {
  ops::AttentionSpec spec;
  spec.causal = config_.causal;
  spec.window = config_.window;
  spec.scale = config_.scale.kind == ScaleKind::learned ? 1 : initial_factor(config_.scale, head_width_);
  spec.softcap = config_.softcap;
  spec.documents_BT = forward.documents_BT;
  spec.kernels = forward.kernels;
  if (forward.training && config_.dropout > 0) {
    spec.dropout = config_.dropout;
    spec.dropout_key = dropout_key(forward, places::attention_weights(layer_));
    spec.samples_B = forward.samples_B;
  }
  return spec;
}

at::Tensor Attention::operator()(const Forward& forward, const at::Tensor& x_BTC) const {
  LayerHealth health;
  const Heads heads = project(forward, x_BTC, health);
  ops::AttentionSpec request = spec(forward);
  request.want_logit_max = forward.health && forward.health->exact_logit;
  const ops::AttentionResult result = ops::attention(heads.q_BTHD, heads.k_BTGD, heads.v_BTGD, request);
  if (forward.attention != nullptr) {
    forward.attention->push_back(ops::reference::attention_matrix(heads.q_BTHD, heads.k_BTGD, request));
  }
  if (forward.health && forward.health->bounds) {
    health.bound_H = result.lse_BHT.amax({0, 2}).to(at::kFloat);
    if (result.logit_max_H.defined()) health.logit_max_H = result.logit_max_H;
    if (forward.health->entropy) {
      add_entropy(health, ops::attention_entropy(heads.q_BTHD, heads.k_BTGD, request), request);
    }
    if (const at::Tensor& watched_BT = forward.health->watched_BT; watched_BT.defined()) {
      health.mass_H = ops::reference::attention_weights(heads.q_BTHD, heads.k_BTGD, watched_BT, request).sum(at::IntArrayRef{0, 2});
      health.mass_rows = watched_BT.ge(0).sum().item<double>();
    }
    forward.health->add(layer_, health);
  }
  return out_(result.out_BTHD.reshape({x_BTC.size(0), x_BTC.size(1), heads_ * head_width_}), forward.kernels);
}

}  // namespace quell
