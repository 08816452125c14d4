// The `model` section: what may be written in YAML about a decoder and about a vision transformer, on top of what they share.
#pragma once

#include <variant>

#include "nn/transformer_config.h"

namespace quell {

struct EmbeddingConfig {
  bool norm = false;
  Optional<double> scale;
};
template <class V>
void describe(V& v, EmbeddingConfig& c) {
  v.field("norm", c.norm, help("A norm of the model's kind on the embeddings."));
  v.field("scale", c.scale, help("Factor of the embeddings (Gemma: sqrt(width)).").above(0).at_most(1e9));
}

struct OutputConfig {
  bool tied = false;
  Optional<double> softcap;
};
template <class V>
void describe(V& v, OutputConfig& c) {
  v.field("tied", c.tied, help("The output matrix is the embedding."));
  v.field("softcap", c.softcap, help("Output logits become c * tanh(logit / c).").above(0).at_most(1e9));
}

struct DecoderConfig : TransformerConfig {
  static constexpr const char* kind_name = "decoder";
  Optional<int64_t> vocabulary;
  int64_t context = 128;
  EmbeddingConfig embedding;
  OutputConfig output;
};
template <class V>
void describe(V& v, DecoderConfig& c) {
  v.field("vocabulary", c.vocabulary, help("Number of token ids; data: as many as the data's.").absent("data").at_least(1).at_most(1e9));
  v.field("context", c.context, help("Length of a training window.").unit("tokens").at_least(1).at_most(1e7));
  describe(v, static_cast<TransformerConfig&>(c));
  v.field("embedding", c.embedding, help("Token embeddings."));
  v.field("output", c.output, help("Output logits."));
}
void check(Problems& problems, const DecoderConfig& config);

enum class PoolKind { mean, token, attention };
template <>
inline constexpr auto choices<PoolKind> = std::array{
    Choice{PoolKind::mean, "mean", "the mean over the patches"}, Choice{PoolKind::token, "token", "the class token"},
    Choice{PoolKind::attention, "attention", "attention of one learned query to the patches, and an MLP"}};
enum class PoolNorm { before, after };
template <>
inline constexpr auto choices<PoolNorm> = std::array{Choice{PoolNorm::before, "before"}, Choice{PoolNorm::after, "after"}};

struct PoolConfig {
  PoolKind kind = PoolKind::mean;
  PoolNorm norm = PoolNorm::before;
  bool qk_norm = false;
};
template <class V>
void describe(V& v, PoolConfig& c) {
  v.field("kind", c.kind, help("How an image's tokens become one vector."));
  v.field("norm", c.norm, help("Whether the final norm comes before pooling or after."));
  v.field("qk_norm", c.qk_norm, help("attention only: normalise its query and keys as model.attention.qk_norm does."));
}

struct VitConfig : TransformerConfig {
  static constexpr const char* kind_name = "vit";
  VitConfig();  // where a vision transformer's defaults differ from a decoder's
  int64_t image = 224;
  int64_t channels = 3;
  int64_t patch = 16;
  Optional<int64_t> classes;
  bool class_token = false;
  int64_t registers = 0;
  PoolConfig pool;

  int64_t grid() const { return image / patch; }  // patches along a side
  int64_t patches() const { return grid() * grid(); }
  int64_t prefix() const { return (class_token ? 1 : 0) + registers; }  // tokens before the patches
  int64_t tokens() const { return prefix() + patches(); }
  int64_t patch_values() const { return channels * patch * patch; }
};
template <class V>
void describe(V& v, VitConfig& c) {
  v.field("image", c.image, help("Height and width of the images that the model sees.").unit("pixels").at_least(1).at_most(16384));
  v.field("channels", c.channels, help("Colour channels: 1 or 3.").at_least(1).at_most(3));
  v.field("patch", c.patch, help("Height and width of a patch; a divisor of image.").unit("pixels").at_least(1).at_most(16384));
  v.field("classes", c.classes, help("Number of classes; data: as many as the data's.").absent("data").at_least(1).at_most(1e9));
  v.field("class_token", c.class_token, help("A learned token before the patches, for pool.kind: token."));
  v.field("registers", c.registers, help("Further learned tokens, which nothing is read from.").at_least(0).at_most(10000));
  v.field("pool", c.pool, help("From tokens to one vector an image."));
  describe(v, static_cast<TransformerConfig&>(c));
}
void check(Problems& problems, const VitConfig& config);

using ModelConfig = std::variant<DecoderConfig, VitConfig>;

// What the two kinds share.
const TransformerConfig& transformer(const ModelConfig& config);
TransformerConfig& transformer(ModelConfig& config);
int64_t sequence_length(const DecoderConfig& config);  // tokens that attention sees in one sample
int64_t sequence_length(const VitConfig& config);

}  // namespace quell
