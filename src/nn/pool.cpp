#include "nn/pool.h"

#include <cmath>

#include "nn/initial.h"

namespace quell {

Pool::Pool(ParameterList& into, int64_t unit, const VitConfig& config)
    : kind_(config.pool.kind), prefix_(config.prefix()), heads_(config.heads), head_width_(config.head()) {
  if (kind_ != PoolKind::attention) return;
  const int64_t width = config.width, inner = heads_ * head_width_;
  const Initial matrix = initial_matrix(config, width);
  probe_ = into.add("pool.probe", Role::embedding, unit, {width}, initial_embedding(config));
  q_ = Linear(into, "pool.q", unit, width, inner, true, matrix);
  k_ = Linear(into, "pool.k", unit, width, inner, true, matrix);
  v_ = Linear(into, "pool.v", unit, width, inner, true, matrix);
  out_ = Linear(into, "pool.out", unit, inner, width, true, initial_matrix(config, inner));
  if (config.pool.qk_norm) {
    const QkNormOptions& options = config.attention.qk_norm;
    norms_projection_ = options.axis == NormAxis::projection;
    q_norm_ = Norm(into, options.tie_qk ? "pool.qk_norm" : "pool.q_norm", unit, options, heads_, head_width_);
    k_norm_ = options.tie_qk ? q_norm_ : Norm(into, "pool.k_norm", unit, options, heads_, head_width_);
  }
  norm_ = Norm(into, "pool.norm", unit, config.norm, width);
  mlp_ = Mlp(into, "pool.mlp", unit, config);
}

// One query a model: small enough for the plain formula, with fp32 scores.
at::Tensor Pool::attend(const Forward& forward, const at::Tensor& x_BPC) const {
  const Kernels kernels = forward.kernels;
  const int64_t batch = x_BPC.size(0), patches = x_BPC.size(1);
  const at::ScalarType exact = x_BPC.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto normed = [&](const Norm& norm, const at::Tensor& x, at::IntArrayRef heads) {
    return norms_projection_ ? norm(x, kernels).view(heads) : norm(x.view(heads), kernels);
  };
  const at::Tensor q_HD = normed(q_norm_, q_(probe_->compute.unsqueeze(0), kernels), {heads_, head_width_});
  const at::Tensor k_BPHD = normed(k_norm_, k_(x_BPC, kernels), {batch, patches, heads_, head_width_});
  const at::Tensor v_BPHD = v_(x_BPC, kernels).view({batch, patches, heads_, head_width_});
  const at::Tensor logits_BPH = (k_BPHD.to(exact) * q_HD.to(exact)).sum(-1) / std::sqrt(static_cast<double>(head_width_));
  const at::Tensor weights_BPH = logits_BPH.softmax(1);
  const at::Tensor out_BHD = (weights_BPH.unsqueeze(-1) * v_BPHD.to(exact)).sum(1);
  return out_(out_BHD.reshape({batch, heads_ * head_width_}).to(x_BPC.scalar_type()), kernels);
}

at::Tensor Pool::operator()(const Forward& forward, const at::Tensor& x_BTC) const {
  if (kind_ == PoolKind::token) return x_BTC.select(1, 0);
  const at::Tensor patches_BPC = x_BTC.narrow(1, prefix_, x_BTC.size(1) - prefix_);
  if (kind_ == PoolKind::mean) return patches_BPC.mean(1);
  const at::Tensor pooled_BC = attend(forward, patches_BPC);
  return pooled_BC + mlp_(forward, norm_(pooled_BC, forward.kernels));
}

}  // namespace quell
