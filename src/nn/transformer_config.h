// What every transformer of ours is made of, decoder or vision: the keys that both kinds of `model` share. The structs of single
// operations (QK-norm, scale, rotary scaling) live beside those operations in ops/options.h.
#pragma once

#include <string>
#include <vector>

#include "config/describe.h"
#include "nn/presets.h"
#include "ops/options.h"

namespace quell {

enum class NormPlace { pre, post, sandwich };
template <>
inline constexpr auto choices<NormPlace> = std::array{
    Choice{NormPlace::pre, "pre", "x + f(norm(x))"}, Choice{NormPlace::post, "post", "x + norm(f(x)), OLMo 2's reordered norm"},
    Choice{NormPlace::sandwich, "sandwich", "x + norm(f(norm(x))), Gemma 3"}};

struct NormConfig {
  NormKind kind = NormKind::rmsnorm;
  double eps = 1e-6;
  bool weight = true;
  bool bias = false;
  bool zero_centered = false;
  CastOrder cast = CastOrder::weight_then_cast;
  NormPlace place = NormPlace::pre;
};
template <class V>
void describe(V& v, NormConfig& c) {
  v.field("kind", c.kind, help("Norm of the residual stream."));
  v.field("eps", c.eps, help("Added under the root.").above(0).at_most(1e9));
  v.field("weight", c.weight, help("Learn a weight."));
  v.field("bias", c.bias, help("layernorm only: learn a bias."));
  v.field("zero_centered", c.zero_centered, help("The factor is 1 + w; w starts at 0."));
  v.field("cast", c.cast, help("Order of rounding to the storage type."));
  v.field("place", c.place, help("Where a block's norms stand."));
}
void check(Problems& problems, const NormConfig& config);

struct MlpConfig {
  MlpKind kind = MlpKind::swiglu;
  Optional<int64_t> width;
  bool bias = false;
};
template <class V>
void describe(V& v, MlpConfig& c) {
  v.field("kind", c.kind, help("The non-linearity; the last letters glu mean a gate."));
  v.field("width", c.width, help("Hidden width; auto: 4 x width, for gated kinds 8/3 x width rounded up to 32.").absent("auto").at_least(1).at_most(1e7));
  v.field("bias", c.bias, help("Biases in the MLP's maps."));
}

enum class PositionKind { rope, learned, sincos, none };
template <>
inline constexpr auto choices<PositionKind> = std::array{
    Choice{PositionKind::rope, "rope", "rotary embedding of q and k"},
    Choice{PositionKind::learned, "learned", "a learned vector a position, added to the token's or patch's (whole models only)"},
    Choice{PositionKind::sincos, "sincos", "fixed sines and cosines of a patch's row and column, added to it (vit only)"},
    Choice{PositionKind::none, "none"}};

struct PositionConfig {
  PositionKind kind = PositionKind::rope;
  double base = 10000;
  Optional<int64_t> width;
  RopePairing pairing = RopePairing::halves;
  RopeScaling scaling;
};
template <class V>
void describe(V& v, PositionConfig& c) {
  v.field("kind", c.kind, help("How positions enter the model."));
  v.field("base", c.base, help("rope: the base of the frequencies.").above(1));
  v.field("width", c.width, help("rope: how many of a head's values are rotated; auto: all.").absent("auto").at_least(2));
  v.field("pairing", c.pairing, help("rope: which values form a pair."));
  v.field("scaling", c.scaling, help("rope: stretching to longer contexts."));
}

enum class AttentionBias { none, qkv, out, all };
template <>
inline constexpr auto choices<AttentionBias> = std::array{
    Choice{AttentionBias::none, "none"}, Choice{AttentionBias::qkv, "qkv", "on the projections of q, k and v"},
    Choice{AttentionBias::out, "out", "on the output projection"}, Choice{AttentionBias::all, "all", "on those and on the output projection"}};

constexpr bool has_qkv_bias(AttentionBias bias) { return bias == AttentionBias::qkv || bias == AttentionBias::all; }
constexpr bool has_out_bias(AttentionBias bias) { return bias == AttentionBias::out || bias == AttentionBias::all; }

struct AttentionConfig {
  Optional<Preset> preset;
  QkNormOptions qk_norm;
  ScaleOptions scale;
  Optional<double> softcap;
  double dropout = 0;
  AttentionBias bias = AttentionBias::none;
  Optional<int64_t> window;
  bool causal = true;

  int64_t head_width = 64;  // not a key: the model's, for presets whose scale depends on it
};
template <class V>
void describe(V& v, AttentionConfig& c) {
  v.field("preset", c.preset, help("A published scheme: sets qk_norm and scale; single keys below override it."));
  v.derive([&c] { if (c.preset) apply_preset(*c.preset, c.head_width, c.qk_norm, c.scale); });
  v.field("qk_norm", c.qk_norm, help("Normalisation of queries and keys."));
  v.field("scale", c.scale, help("Factor of the attention logits."));
  v.field("softcap", c.softcap, help("Logits become c * tanh(logit / c).").above(0).at_most(1e9));
  v.field("dropout", c.dropout, help("Dropout of attention weights.").at_least(0).below(1));
  v.field("bias", c.bias, help("Biases of the projections."));
  v.field("window", c.window, help("A query sees this many keys, itself included; none: all.").unit("tokens").at_least(1));
  v.field("causal", c.causal, help("A query sees no later key."));
}

// An alternative attention block: what is not written is as in `attention` and `position`.
struct VariantConfig {
  AttentionConfig attention;
  PositionConfig position;
};
template <class V>
void describe(V& v, VariantConfig& c) {
  describe(v, c.attention);
  v.field("position", c.position, help("Positions in these blocks."));
}

enum class InitKind { fan_in, truncated, gpt2, vit };
template <>
inline constexpr auto choices<InitKind> = std::array{
    Choice{InitKind::fan_in, "fan_in", "matrices N(0, 1/fan-in), embeddings N(0, 1/width)"},
    Choice{InitKind::truncated, "truncated", "fan_in, cut off at three deviations"},
    Choice{InitKind::gpt2, "gpt2", "everything N(0, 0.02^2)"}, Choice{InitKind::vit, "vit", "gpt2, cut off at three deviations"}};
enum class InitResidual { scaled, as_matrix, zero };
template <>
inline constexpr auto choices<InitResidual> = std::array{
    Choice{InitResidual::scaled, "scaled", "divided by sqrt(2 x layers)"}, Choice{InitResidual::as_matrix, "as_matrix"},
    Choice{InitResidual::zero, "zero"}};
enum class InitHead { automatic, zero, as_matrix };
template <>
inline constexpr auto choices<InitHead> = std::array{
    Choice{InitHead::automatic, "auto", "zero, but as_matrix where the output is tied"}, Choice{InitHead::zero, "zero"},
    Choice{InitHead::as_matrix, "as_matrix"}};

struct InitConfig {
  InitKind kind = InitKind::fan_in;
  InitResidual residual = InitResidual::scaled;
  InitHead head = InitHead::automatic;
  Optional<std::string> from;
};
template <class V>
void describe(V& v, InitConfig& c) {
  v.field("kind", c.kind, help("How matrices and embeddings are drawn."));
  v.field("residual", c.residual, help("What differs for the projections that write into the residual stream."));
  v.field("head", c.head, help("How the output matrix starts."));
  v.field("from", c.from, help("Start from saved weights: a .safetensors file or a run's folder."));
}

enum class BlockKind { sequential, parallel };
template <>
inline constexpr auto choices<BlockKind> = std::array{
    Choice{BlockKind::sequential, "sequential", "attention, then the MLP, each with its norm"},
    Choice{BlockKind::parallel, "parallel", "attention and MLP of one normed input, summed (ViT-22B)"}};

struct TransformerConfig {
  int64_t width = 128;
  int64_t layers = 4;
  int64_t heads = 4;
  Optional<int64_t> kv_heads;
  Optional<int64_t> head_width;
  BlockKind block = BlockKind::sequential;
  NormConfig norm;
  MlpConfig mlp;
  PositionConfig position;
  AttentionConfig attention;
  InitConfig init;
  double dropout = 0;
  double drop_path = 0;
  Optional<double> layer_scale;
  NamedMap<VariantConfig> variants;
  std::vector<std::string> pattern;

  int64_t kv() const { return kv_heads.value_or(heads); }
  int64_t head() const { return head_width.value_or(heads > 0 ? width / heads : 0); }
  int64_t mlp_width() const;
};
template <class V>
void describe(V& v, TransformerConfig& c) {
  v.field("width", c.width, help("Width of the residual stream.").at_least(1).at_most(1e6));
  v.field("layers", c.layers, help("Number of blocks.").at_least(1).at_most(10000));
  v.field("heads", c.heads, help("Query heads.").at_least(1).at_most(1e6));
  v.field("kv_heads", c.kv_heads, help("Key/value heads; a divisor of heads.").absent("heads").at_least(1).at_most(1e6));
  v.field("head_width", c.head_width, help("Width of one head; auto: width / heads.").absent("auto").at_least(1).at_most(1e6));
  v.field("block", c.block, help("How attention and MLP follow each other."));
  v.field("norm", c.norm, help("Norms of the residual stream."));
  v.field("mlp", c.mlp, help("The blocks' MLP."));
  v.field("position", c.position, help("How positions enter the model."));
  v.derive([&c] { c.attention.head_width = c.head(); });
  v.field("attention", c.attention, help("The blocks' attention."));
  v.field("init", c.init, help("Initial values."));
  v.field("dropout", c.dropout, help("Dropout of embeddings and of what blocks add.").at_least(0).below(1));
  v.field("drop_path", c.drop_path, help("Probability with which a sample skips what the last block adds; it grows from 0 at the first.").at_least(0).below(1));
  v.field("layer_scale", c.layer_scale, help("What blocks add is multiplied by a learned vector that starts at this.").at_least(-1e9).at_most(1e9));
  v.derive([&c] {
    c.variants.fallback = {c.attention, c.position};
    c.variants.fallback.attention.preset.reset();  // expanded already: applied again it would undo the keys that override it
  });
  v.field("variants", c.variants, help("Alternative attention blocks by name."));
  v.field("pattern", c.pattern, help("Which variant each layer takes, repeated: [local x5, global]; `base` is model.attention."));
}
// For the check() of each kind of model.
void check(Problems& problems, const TransformerConfig& config);

// The attention block of one layer, by pattern and variants.
VariantConfig layer_variant(const TransformerConfig& config, int64_t layer);

}  // namespace quell
