// Multi-head, grouped-query and multi-query attention with QK-norm, in the one order of DESIGN section 5: project; norm over the
// projection; split heads; norm over the head; rotary (or rotary, then the head norm); attend; project back.
// Shapes: B batch, T position, C width, H query heads, G key/value heads, D head width.
#pragma once

#include <string>

#include "nn/transformer_config.h"
#include "nn/forward.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/rotary.h"
#include "ops/attention.h"

namespace quell {

class Attention {
 public:
  // `name` is the prefix of the parameters' names ("blocks.3.attention").
  Attention(ParameterList& into, const std::string& name, int64_t unit, int64_t layer, const TransformerConfig& model,
            const VariantConfig& block);

  // x_BTC -> [B, T, C].
  at::Tensor operator()(const Forward& forward, const at::Tensor& x_BTC) const;

  // The learned factor of the logits as it acts now, [1] or [H]; undefined where the scale is not learned.
  at::Tensor learned_factor() const;

 private:
  struct Heads {
    at::Tensor q_BTHD, k_BTGD, v_BTGD;
  };
  Heads project(const Forward& forward, const at::Tensor& x_BTC, LayerHealth& health) const;
  at::Tensor normed_and_rotated(const Norm& norm, const at::Tensor& x_BTHD, Kernels kernels) const;
  at::Tensor scaled(const at::Tensor& q_BTHD) const;  // times the learned factor
  ops::AttentionSpec spec(const Forward& forward) const;

  int64_t layer_, heads_, kv_heads_, head_width_;
  AttentionConfig config_;
  Linear q_, k_, v_, out_;
  Norm q_norm_, k_norm_;
  Rotary rotary_;
  Parameter* scale_ = nullptr;
};

}  // namespace quell
