// From the tokens of an image to one vector: the mean over patches, the class token, or attention of one learned query to the patches
// followed by an MLP (Zhai et al. 2022, "multihead attention pooling"). The norm before or after is the model's.
// Shapes: B batch, T tokens, P patches, C width, H heads, D head width.
#pragma once

#include "nn/config.h"
#include "nn/forward.h"
#include "nn/linear.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace quell {

class Pool {
 public:
  Pool() = default;
  Pool(ParameterList& into, int64_t unit, const VitConfig& config);

  // x_BTC -> [B, C].
  at::Tensor operator()(const Forward& forward, const at::Tensor& x_BTC) const;

 private:
  at::Tensor attend(const Forward& forward, const at::Tensor& x_BPC) const;

  PoolKind kind_ = PoolKind::mean;
  bool norms_projection_ = false;
  int64_t prefix_ = 0, heads_ = 1, head_width_ = 1;
  Parameter* probe_ = nullptr;
  Linear q_, k_, v_, out_;
  Norm q_norm_, k_norm_, norm_;
  Mlp mlp_;
};

}  // namespace quell
