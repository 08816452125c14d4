#include "nn/decoder.h"

#include "nn/initial.h"
#include "ops/linear.h"

namespace quell {

Decoder::Decoder(ParameterList& into, const DecoderConfig& config) : config_(config) {
  const int64_t vocabulary = config.vocabulary.value();
  const int64_t head_unit = config.layers + 1;
  embedding_ = into.add("embedding.weight", Role::embedding, 0, {vocabulary, config.width}, initial_embedding(config));
  if (config.position.kind == PositionKind::learned) {
    position_ = into.add("position.weight", Role::embedding, 0, {config.context, config.width}, initial_embedding(config));
  }
  if (config.embedding.norm) embedding_norm_ = Norm(into, "embedding_norm", 0, config.norm, config.width);
  trunk_ = Trunk(into, config);
  norm_ = Norm(into, "norm", head_unit, config.norm, config.width);
  output_ = config.output.tied ? embedding_
                               : into.add("output.weight", Role::output, head_unit, {vocabulary, config.width},
                                          initial_output(config));
}

at::Tensor Decoder::embed(const Forward& forward, const at::Tensor& tokens_BT) const {
  at::Tensor x = ops::embedding(embedding_->compute, tokens_BT, forward.kernels);
  if (config_.embedding.scale) x = x * *config_.embedding.scale;
  if (position_ != nullptr) {
    const at::Tensor positions = at::arange(tokens_BT.size(1), tokens_BT.options());
    x = x + ops::embedding(position_->compute, positions, forward.kernels);
  }
  return dropout(forward, embedding_norm_(x, forward.kernels), config_.dropout, places::embedding);
}

at::Tensor Decoder::operator()(const Forward& forward, const at::Tensor& tokens_BT) const {
  return norm_(trunk_(forward, embed(forward, tokens_BT)), forward.kernels);
}

at::Tensor Decoder::logits(const at::Tensor& x_NC, Kernels kernels) const {
  return ops::output_logits(x_NC, output_->compute, kernels);
}

}  // namespace quell
