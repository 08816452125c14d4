// The option structs and enums of ops' functions, with their describe(): what may be written in YAML about QK-norm, the softmax
// scale, norms, rotary embeddings and activations, and which combinations are refused with the reason (DESIGN section 5).
#pragma once

#include <string>
#include <vector>

#include "config/describe.h"

namespace quell {

// ---- norms ------------------------------------------------------------------------------------------------------------

enum class LossKind { softmax, sigmoid };
template <>
inline constexpr auto choices<LossKind> = std::array{
    Choice{LossKind::softmax, "softmax", "cross entropy of the softmax over all classes"},
    Choice{LossKind::sigmoid, "sigmoid", "the sum over classes of the binary cross entropy of each (ViT-22B)"}};

enum class NormKind { none, layernorm, rmsnorm, l2 };
template <>
inline constexpr auto choices<NormKind> = std::array{
    Choice{NormKind::none, "none", "no normalisation"},
    Choice{NormKind::layernorm, "layernorm", "(x - mean) / sqrt(variance + eps)"},
    Choice{NormKind::rmsnorm, "rmsnorm", "x / sqrt(mean of x^2 + eps)"},
    Choice{NormKind::l2, "l2", "x / max(norm, eps)"}};

// Where a result is rounded to the storage type (only visible below fp32).
enum class CastOrder { weight_then_cast, cast_then_weight, none };
template <>
inline constexpr auto choices<CastOrder> = std::array{
    Choice{CastOrder::weight_then_cast, "weight_then_cast", "multiply by the weight in fp32, then round once"},
    Choice{CastOrder::cast_then_weight, "cast_then_weight", "round the normalised value, then multiply by the weight"},
    Choice{CastOrder::none, "none", "everything in the storage type"}};

// ---- QK-norm ------------------------------------------------------------------------------------------------------------

enum class NormAxis { head, projection };
template <>
inline constexpr auto choices<NormAxis> = std::array{
    Choice{NormAxis::head, "head", "statistics over one head's D values"},
    Choice{NormAxis::projection, "projection", "statistics over the whole projection, H*D for q and G*D for k"}};

enum class NormWeight { none, shared, per_head, projection };
template <>
inline constexpr auto choices<NormWeight> = std::array{
    Choice{NormWeight::none, "none", "no weight"}, Choice{NormWeight::shared, "shared", "[D], one for all heads"},
    Choice{NormWeight::per_head, "per_head", "[H, D] for q and [G, D] for k"},
    Choice{NormWeight::projection, "projection", "[H*D] for q and [G*D] for k"}};

enum class RopeOrder { before, after };
template <>
inline constexpr auto choices<RopeOrder> = std::array{
    Choice{RopeOrder::before, "before", "the norm comes before the rotary embedding"},
    Choice{RopeOrder::after, "after", "the norm comes after the rotary embedding"}};

struct QkNormOptions {
  NormKind kind = NormKind::rmsnorm;
  NormAxis axis = NormAxis::head;
  NormWeight weight = NormWeight::shared;
  bool tie_qk = false;
  bool zero_centered = false;
  bool center = true;
  bool bias = false;
  double eps = 1e-6;
  CastOrder cast = CastOrder::weight_then_cast;
  RopeOrder rope = RopeOrder::before;
};

template <class V>
void describe(V& v, QkNormOptions& o) {
  v.field("kind", o.kind, help("Normalisation of queries and keys before their dot product."));
  v.field("axis", o.axis, help("What the statistics are taken over."));
  v.field("weight", o.weight, help("Shape of the learned weight."));
  v.field("tie_qk", o.tie_qk, help("One weight for q and k."));
  v.field("zero_centered", o.zero_centered, help("The factor is 1 + w, computed in fp32; w starts at 0."));
  v.field("center", o.center, help("layernorm only: subtract the mean."));
  v.field("bias", o.bias, help("layernorm only: add a learned bias."));
  v.field("eps", o.eps, help("Added under the root; for l2 the smallest norm divided by (0 allowed there).").at_least(0));
  v.field("cast", o.cast, help("Order of rounding to the storage type."));
  v.field("rope", o.rope, help("Whether the norm comes before or after the rotary embedding."));
}

// Refusals that QkNormOptions alone decides; those that need the heads are in nn/config.h.
void check(Problems& problems, const QkNormOptions& options);

enum class ScaleKind { inv_sqrt, constant, learned };
template <>
inline constexpr auto choices<ScaleKind> = std::array{
    Choice{ScaleKind::inv_sqrt, "inv_sqrt", "1 / sqrt(head width)"},
    Choice{ScaleKind::constant, "constant", "scale.value"},
    Choice{ScaleKind::learned, "learned", "a learned factor that starts at scale.init"}};

enum class ScaleForm { linear, exp };
template <>
inline constexpr auto choices<ScaleForm> = std::array{
    Choice{ScaleForm::linear, "linear", "the stored parameter is the factor"},
    Choice{ScaleForm::exp, "exp", "the stored parameter is log(factor); the factor is exp(min(s, log max))"}};

struct ScaleOptions {
  ScaleKind kind = ScaleKind::inv_sqrt;
  Optional<double> value;    // constant only
  bool per_head = false;
  ScaleForm form = ScaleForm::linear;
  Optional<double> init;     // absent: henry
  Optional<int64_t> length;  // henry only
  Optional<double> max;      // exp only
};

template <class V>
void describe(V& v, ScaleOptions& o) {
  v.field("kind", o.kind, help("Factor of the attention logits."));
  v.field("value", o.value, help("The factor (constant only).").at_least(-1e9).at_most(1e9));
  v.field("per_head", o.per_head, help("learned: one factor a query head rather than one in all."));
  v.field("form", o.form, help("learned: how the factor is stored."));
  v.field("init", o.init, help("learned: the factor at the start; henry is log2(L^2 - L) with L = scale.length.").absent("henry").at_least(-1e9).at_most(1e9));
  v.field("length", o.length, help("The length L of Henry's start.").at_least(2));
  v.field("max", o.max, help("exp: the largest factor.").above(0));
}

void check(Problems& problems, const ScaleOptions& options);
// The factor at the start: constant, 1 / sqrt(head_width), init, or Henry's.
double initial_factor(const ScaleOptions& options, int64_t head_width);

// ---- rotary -----------------------------------------------------------------------------------------------------------

enum class RopePairing { halves, interleaved };
template <>
inline constexpr auto choices<RopePairing> = std::array{
    Choice{RopePairing::halves, "halves", "element i pairs with i + width/2 (Llama, Qwen)"},
    Choice{RopePairing::interleaved, "interleaved", "element 2i pairs with 2i + 1 (GPT-J, Cohere)"}};

enum class RopeScalingKind { none, linear, llama3 };
template <>
inline constexpr auto choices<RopeScalingKind> = std::array{
    Choice{RopeScalingKind::none, "none"}, Choice{RopeScalingKind::linear, "linear", "positions divided by factor"},
    Choice{RopeScalingKind::llama3, "llama3", "low frequencies divided by factor, a smooth step between"}};

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 8;
  double low = 1;
  double high = 4;
  int64_t original = 8192;
};

template <class V>
void describe(V& v, RopeScaling& o) {
  v.field("kind", o.kind, help("How rotary frequencies are changed for longer contexts."));
  v.field("factor", o.factor, help("By how much the context grows.").at_least(1));
  v.field("low", o.low, help("llama3: wavelengths above original / low are divided by factor.").above(0));
  v.field("high", o.high, help("llama3: wavelengths below original / high stay.").above(0));
  v.field("original", o.original, help("llama3: the context of the original training.").unit("tokens").at_least(1));
}

void check(Problems& problems, const RopeScaling& scaling);

struct RopeOptions {
  double base = 10000;
  int64_t width = 0;  // rotated part of a head
  RopePairing pairing = RopePairing::halves;
  RopeScaling scaling;
};

// ---- activations ------------------------------------------------------------------------------------------------------

enum class MlpKind { gelu, gelu_tanh, swiglu, geglu, geglu_tanh, relu_squared };
template <>
inline constexpr auto choices<MlpKind> = std::array{
    Choice{MlpKind::gelu, "gelu", "exact GELU (erf)"}, Choice{MlpKind::gelu_tanh, "gelu_tanh", "GELU by tanh (GPT-2)"},
    Choice{MlpKind::swiglu, "swiglu", "silu(gate) * up"}, Choice{MlpKind::geglu, "geglu", "gelu(gate) * up"},
    Choice{MlpKind::geglu_tanh, "geglu_tanh", "gelu_tanh(gate) * up (Gemma)"},
    Choice{MlpKind::relu_squared, "relu_squared", "max(x, 0)^2"}};
constexpr bool is_gated(MlpKind kind) {
  return kind == MlpKind::swiglu || kind == MlpKind::geglu || kind == MlpKind::geglu_tanh;
}

// ---- which implementation ------------------------------------------------------------------------------------------------

enum class Kernels { automatic, fused, reference };
template <>
inline constexpr auto choices<Kernels> = std::array{
    Choice{Kernels::automatic, "auto", "fused where it can honour the request, else the reference"},
    Choice{Kernels::fused, "fused", "fused; an error where it cannot be"},
    Choice{Kernels::reference, "reference", "the readable twins"}};

}  // namespace quell
