// A decoder language model: token embedding, blocks, a final norm, and the output matrix. The parts are named, drawn and saved
// as "embedding.weight", "position.weight", "blocks.<i>....", "norm.weight", "output.weight".
// Shapes: B batch, T position, C width, V vocabulary, N = B * T.
#pragma once

#include "nn/config.h"
#include "nn/forward.h"
#include "nn/trunk.h"
#include "tensors/parameter.h"

namespace quell {

class Decoder {
 public:
  // Declares the parameters. `config.vocabulary` is resolved. The list must outlive the decoder.
  Decoder(ParameterList& into, const DecoderConfig& config);

  // tokens_BT (int64) -> x_BTC after the final norm.
  at::Tensor operator()(const Forward& forward, const at::Tensor& tokens_BT) const;
  // x_NC -> logits [N, V] before any soft-cap; rows may be strided.
  at::Tensor logits(const at::Tensor& x_NC, Kernels kernels) const;

  const DecoderConfig& config() const { return config_; }
  const std::vector<Block>& blocks() const { return trunk_.blocks(); }

 private:
  at::Tensor embed(const Forward& forward, const at::Tensor& tokens_BT) const;

  DecoderConfig config_;
  Parameter* embedding_;
  Parameter* position_ = nullptr;
  Norm embedding_norm_;
  Trunk trunk_;
  Norm norm_;
  Parameter* output_ = nullptr;
};

}  // namespace quell
