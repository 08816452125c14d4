#include "nn/count.h"

#include <algorithm>

namespace quell {
namespace {

// Weight and bias of one norm whose weight has `size` elements.
int64_t norm_parameters(const NormConfig& c, int64_t size) { return (c.weight ? size : 0) + (c.bias ? size : 0); }

int64_t qk_norm_parameters(const DecoderConfig& c, const QkNormOptions& o) {
  if (o.kind == NormKind::none) return 0;
  const auto one = [&](int64_t heads) {
    const bool weightless_projection = o.axis == NormAxis::projection && o.weight == NormWeight::none;  // its bias is whole
    const bool whole = weightless_projection || o.weight == NormWeight::projection || o.weight == NormWeight::per_head;
    const int64_t size = whole ? heads * c.head() : c.head();
    return (o.weight != NormWeight::none ? size : 0) + (o.bias ? size : 0);
  };
  // A tied norm is q's: its parameters are counted once.
  return one(c.heads) + (o.tie_qk ? 0 : one(c.kv()));
}

// Elements of the four projections' matrices.
int64_t attention_matrices(const DecoderConfig& c) { return c.width * c.head() * 2 * (c.heads + c.kv()); }

int64_t attention_parameters(const DecoderConfig& c, const AttentionConfig& a) {
  int64_t count = attention_matrices(c) + qk_norm_parameters(c, a.qk_norm);
  if (a.bias != AttentionBias::none) count += (c.heads + 2 * c.kv()) * c.head();
  if (a.bias == AttentionBias::all) count += c.width;
  if (a.scale.kind == ScaleKind::learned) count += a.scale.per_head ? c.heads : 1;
  return count;
}

int64_t mlp_matrices(const DecoderConfig& c) { return (is_gated(c.mlp.kind) ? 3 : 2) * c.width * c.mlp_width(); }

int64_t mlp_parameters(const DecoderConfig& c) {
  const int64_t biases = (is_gated(c.mlp.kind) ? 2 : 1) * c.mlp_width() + c.width;
  return mlp_matrices(c) + (c.mlp.bias ? biases : 0);
}

double mean_visible_keys(const DecoderConfig& c, const AttentionConfig& a) {
  const auto length = static_cast<double>(c.context);
  const double window = a.window ? std::min(length, static_cast<double>(*a.window)) : length;
  if (!a.causal) return std::min(length, a.window ? 2 * window - 1 : length);
  return (window * (window + 1) / 2 + (length - window) * window) / length;
}

}  // namespace

int64_t count_parameters(const DecoderConfig& c) {
  const int64_t vocabulary = c.vocabulary.value();
  int64_t count = vocabulary * c.width + norm_parameters(c.norm, c.width);
  if (!c.output.tied) count += vocabulary * c.width;
  if (c.position.kind == PositionKind::learned) count += c.context * c.width;
  if (c.embedding.norm) count += norm_parameters(c.norm, c.width);
  const int64_t norms = (c.norm.place == NormPlace::sandwich ? 4 : 2) * norm_parameters(c.norm, c.width);
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    count += norms + attention_parameters(c, layer_variant(c, layer).attention) + mlp_parameters(c);
  }
  return count;
}

double flops_per_token(const DecoderConfig& c) {
  const double products = static_cast<double>(c.layers * (attention_matrices(c) + mlp_matrices(c)) + c.vocabulary.value() * c.width);
  double attention = 0;
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    attention += 12.0 * static_cast<double>(c.heads * c.head()) * mean_visible_keys(c, layer_variant(c, layer).attention);
  }
  return 6 * products + attention;
}

}  // namespace quell
