#include "nn/count.h"

#include <algorithm>

namespace quell {
namespace {

// Weight and bias of one norm whose weight has `size` elements.
int64_t norm_parameters(const NormConfig& c, int64_t size) { return (c.weight ? size : 0) + (c.bias ? size : 0); }

int64_t qk_norm_parameters(const TransformerConfig& c, const QkNormOptions& o, int64_t key_heads) {
  if (o.kind == NormKind::none) return 0;
  const auto one = [&](int64_t heads) {
    const bool weightless_projection = o.axis == NormAxis::projection && o.weight == NormWeight::none;  // its bias is whole
    const bool whole = weightless_projection || o.weight == NormWeight::projection || o.weight == NormWeight::per_head;
    const int64_t size = whole ? heads * c.head() : c.head();
    return (o.weight != NormWeight::none ? size : 0) + (o.bias ? size : 0);
  };
  // A tied norm is q's: its parameters are counted once.
  return one(c.heads) + (o.tie_qk ? 0 : one(key_heads));
}

// Elements of the four projections' matrices.
int64_t attention_matrices(const TransformerConfig& c) { return c.width * c.head() * 2 * (c.heads + c.kv()); }

int64_t attention_parameters(const TransformerConfig& c, const AttentionConfig& a) {
  int64_t count = attention_matrices(c) + qk_norm_parameters(c, a.qk_norm, c.kv());
  if (has_qkv_bias(a.bias)) count += (c.heads + 2 * c.kv()) * c.head();
  if (has_out_bias(a.bias)) count += c.width;
  if (a.scale.kind == ScaleKind::learned) count += a.scale.per_head ? c.heads : 1;
  return count;
}

int64_t mlp_matrices(const TransformerConfig& c) { return (is_gated(c.mlp.kind) ? 3 : 2) * c.width * c.mlp_width(); }

int64_t mlp_parameters(const TransformerConfig& c) {
  const int64_t biases = (is_gated(c.mlp.kind) ? 2 : 1) * c.mlp_width() + c.width;
  return mlp_matrices(c) + (c.mlp.bias ? biases : 0);
}

double mean_visible_keys(int64_t tokens, const AttentionConfig& a) {
  const auto length = static_cast<double>(tokens);
  const double window = a.window ? std::min(length, static_cast<double>(*a.window)) : length;
  if (!a.causal) return std::min(length, a.window ? 2 * window - 1 : length);
  return (window * (window + 1) / 2 + (length - window) * window) / length;
}

int64_t block_parameters(const TransformerConfig& c) {
  const bool sequential = c.block == BlockKind::sequential;
  const int64_t branches = sequential ? 2 : 1;
  const int64_t norms = branches * (c.norm.place == NormPlace::sandwich ? 2 : 1) * norm_parameters(c.norm, c.width);
  const int64_t scales = c.layer_scale ? branches * c.width : 0;
  int64_t count = 0;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    count += norms + scales + attention_parameters(c, layer_variant(c, layer).attention) + mlp_parameters(c);
  }
  return count;
}

// Of the blocks, for one sample of so many tokens.
double block_flops(const TransformerConfig& c, int64_t tokens) {
  double keys = 0;
  for (int64_t layer = 0; layer < c.layers; ++layer) keys += mean_visible_keys(tokens, layer_variant(c, layer).attention);
  const double products = 6.0 * static_cast<double>(c.layers * (attention_matrices(c) + mlp_matrices(c)));
  return static_cast<double>(tokens) * (products + 12.0 * static_cast<double>(c.heads * c.head()) * keys);
}

int64_t pool_parameters(const VitConfig& c) {
  if (c.pool.kind != PoolKind::attention) return 0;
  const int64_t projections = 4 * c.width * c.heads * c.head() + 3 * c.heads * c.head() + c.width;
  const int64_t norms = c.pool.qk_norm ? qk_norm_parameters(c, c.attention.qk_norm, c.heads) : 0;
  return c.width + projections + norms + norm_parameters(c.norm, c.width) + mlp_parameters(c);
}

}  // namespace

int64_t count_parameters(const DecoderConfig& c) {
  const int64_t vocabulary = c.vocabulary.value();
  int64_t count = vocabulary * c.width + norm_parameters(c.norm, c.width);
  if (!c.output.tied) count += vocabulary * c.width;
  if (c.position.kind == PositionKind::learned) count += c.context * c.width;
  if (c.embedding.norm) count += norm_parameters(c.norm, c.width);
  return count + block_parameters(c);
}

int64_t count_parameters(const VitConfig& c) {
  const int64_t classes = c.classes.value();
  int64_t count = (c.patch_values() + 1) * c.width + c.prefix() * c.width;
  if (c.position.kind == PositionKind::learned) count += c.patches() * c.width;
  return count + block_parameters(c) + norm_parameters(c.norm, c.width) + pool_parameters(c) + classes * (c.width + 1);
}

int64_t count_parameters(const ModelConfig& config) {
  return std::visit([](const auto& c) { return count_parameters(c); }, config);
}

double flops_per_sample(const DecoderConfig& c) {
  return block_flops(c, c.context) + 6.0 * static_cast<double>(c.context * c.vocabulary.value() * c.width);
}

double flops_per_sample(const VitConfig& c) {
  double products = static_cast<double>(c.patches() * c.patch_values() * c.width + c.classes.value() * c.width);
  // The pool's keys and values are of every token, the rest of the one query.
  if (c.pool.kind == PoolKind::attention) {
    const int64_t each = 2 * c.width * c.heads * c.head();
    products += static_cast<double>(c.patches() * each + each + mlp_matrices(c));
  }
  return block_flops(c, c.tokens()) + 6.0 * products;
}

double flops_per_sample(const ModelConfig& config) {
  return std::visit([](const auto& c) { return flops_per_sample(c); }, config);
}

}  // namespace quell
