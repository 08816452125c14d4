// One block of a decoder: attention and MLP, each added to the residual stream, with norms before, after, or on both sides
// (`model.norm.place`).
#pragma once

#include <string>

#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace quell {

class Block {
 public:
  Block(ParameterList& into, int64_t layer, int64_t unit, const DecoderConfig& model);
  at::Tensor operator()(const Forward& forward, const at::Tensor& x_BTC) const;
  const Attention& attention() const { return attention_; }

 private:
  int64_t layer_;
  double dropout_;
  Norm attention_norm_;
  Attention attention_;
  Norm attention_post_norm_, mlp_norm_;
  Mlp mlp_;
  Norm mlp_post_norm_;
};

}  // namespace quell
