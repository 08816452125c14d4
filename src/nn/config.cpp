#include "nn/config.h"

#include "base/text.h"

namespace quell {
namespace {

// A patch has neighbours in two directions; what is said of positions in a row would mean something else there.
void check_no_order(Problems& problems, const AttentionConfig& attention, const PositionConfig& position, const std::string& at) {
  if (attention.causal) problems.add(at + "causal", "patches have no order", "set it to false");
  if (attention.window) problems.add(at + "window", "a window over patches in reading order is no neighbourhood", "leave it out");
  if (position.kind == PositionKind::rope) {
    problems.add(at.empty() || at == "attention." ? "position.kind" : at + "position.kind", "rope rotates by a place in a row, which patches do not have",
                 "allowed: learned, sincos, none");
  }
}

}  // namespace

void check(Problems& problems, const DecoderConfig& c) {
  check(problems, static_cast<const TransformerConfig&>(c));
  if (c.output.tied && c.init.head == InitHead::zero) {
    problems.add("init.head", "zero would make the tied embedding zero", "set it to as_matrix or auto, or output.tied to false");
  }
  if (c.position.kind == PositionKind::sincos) {
    problems.add("position.kind", "sincos is of rows and columns, which text does not have", "allowed: rope, learned, none");
  }
}

VitConfig::VitConfig() {
  norm.kind = NormKind::layernorm;
  norm.bias = true;
  mlp = {.kind = MlpKind::gelu, .width = std::nullopt, .bias = true};
  position.kind = PositionKind::learned;
  attention.causal = false;
  attention.bias = AttentionBias::all;
  init.kind = InitKind::vit;
  init.residual = InitResidual::as_matrix;
}

void check(Problems& problems, const VitConfig& c) {
  check(problems, static_cast<const TransformerConfig&>(c));
  if (c.channels == 2) problems.add("channels", "2 is neither grey nor colour", "allowed: 1, 3");
  if (c.image % c.patch != 0) {
    problems.add("patch", cat(c.patch, " does not divide model.image ", c.image), "choose a divisor, or another image size");
  }
  if (c.pool.kind == PoolKind::token && !c.class_token) {
    problems.add("pool.kind", "there is no class token to read", "set model.class_token to true, or pool.kind to mean or attention");
  }
  if (c.position.kind == PositionKind::sincos && c.width % 4 != 0) {
    problems.add("position.kind", cat("sincos splits the width ", c.width, " into four parts"), "choose a multiple of 4 for model.width");
  }
  if (c.pool.qk_norm && c.pool.kind != PoolKind::attention) {
    problems.add("pool.qk_norm", cat("pool.kind ", name_of(c.pool.kind), " has no query"), "set it to false, or pool.kind to attention");
  }
  if (c.pool.qk_norm && c.attention.qk_norm.kind == NormKind::none) {
    problems.add("pool.qk_norm", "model.attention.qk_norm.kind is none, so there is no norm to use", "set it to false, or choose a qk_norm");
  }
  check_no_order(problems, c.attention, c.position, "attention.");
  for (const auto& [name, variant] : c.variants) check_no_order(problems, variant.attention, variant.position, "variants." + name + ".");
}

const TransformerConfig& transformer(const ModelConfig& config) {
  return std::visit([](const auto& c) -> const TransformerConfig& { return c; }, config);
}
TransformerConfig& transformer(ModelConfig& config) {
  return std::visit([](auto& c) -> TransformerConfig& { return c; }, config);
}

int64_t sequence_length(const DecoderConfig& config) { return config.context; }
int64_t sequence_length(const VitConfig& config) { return config.tokens(); }

}  // namespace quell
