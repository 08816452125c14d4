#include "nn/block.h"

namespace quell {
namespace {

Norm norm_if(bool wanted, ParameterList& into, const std::string& name, int64_t unit, const DecoderConfig& model) {
  return wanted ? Norm(into, name, unit, model.norm, model.width) : Norm();
}

}  // namespace

// The members' order of declaration is the parameters' order of first use.
Block::Block(ParameterList& into, int64_t layer, int64_t unit, const DecoderConfig& model)
    : layer_(layer),
      dropout_(model.dropout),
      attention_norm_(norm_if(model.norm.place != NormPlace::post, into, "blocks." + std::to_string(layer) + ".attention_norm",
                              unit, model)),
      attention_(into, "blocks." + std::to_string(layer) + ".attention", unit, layer, model, layer_variant(model, layer)),
      attention_post_norm_(norm_if(model.norm.place != NormPlace::pre, into,
                                   "blocks." + std::to_string(layer) + ".attention_post_norm", unit, model)),
      mlp_norm_(norm_if(model.norm.place != NormPlace::post, into, "blocks." + std::to_string(layer) + ".mlp_norm", unit, model)),
      mlp_(into, "blocks." + std::to_string(layer) + ".mlp", unit, model),
      mlp_post_norm_(norm_if(model.norm.place != NormPlace::pre, into, "blocks." + std::to_string(layer) + ".mlp_post_norm", unit,
                             model)) {}

at::Tensor Block::operator()(const Forward& forward, const at::Tensor& x_BTC) const {
  const Kernels kernels = forward.kernels;
  const at::Tensor attended = attention_post_norm_(attention_(forward, attention_norm_(x_BTC, kernels)), kernels);
  const at::Tensor x = x_BTC + dropout(forward, attended, dropout_, places::attended(layer_));
  const at::Tensor transformed = mlp_post_norm_(mlp_(forward, mlp_norm_(x, kernels)), kernels);
  return x + dropout(forward, transformed, dropout_, places::transformed(layer_));
}

}  // namespace quell
