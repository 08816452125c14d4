// One block: attention and MLP, added to the residual stream one after the other or (`model.block: parallel`) as one sum, with
// norms before, after, or on both sides (`model.norm.place`), LayerScale and drop path where asked. A parallel block has the norms
// and the LayerScale of its attention only.
#pragma once

#include <string>

#include "nn/attention.h"
#include "nn/mlp.h"
#include "nn/norm.h"

namespace quell {

class Block {
 public:
  Block(ParameterList& into, int64_t layer, int64_t unit, const TransformerConfig& model);
  at::Tensor operator()(const Forward& forward, const at::Tensor& x_BTC) const;
  const Attention& attention() const { return attention_; }

 private:
  // What is added to the stream: y after its norm, its LayerScale, dropout and drop path.
  at::Tensor branch(const Forward& forward, const at::Tensor& y_BTC, const Norm& norm, const Parameter* scale, uint64_t place) const;

  int64_t layer_;
  bool parallel_;
  double dropout_, drop_path_;
  Norm attention_norm_;
  Attention attention_;
  Norm attention_post_norm_;
  Parameter* attention_scale_;
  Norm mlp_norm_;
  Mlp mlp_;
  Norm mlp_post_norm_;
  Parameter* mlp_scale_;
};

}  // namespace quell
