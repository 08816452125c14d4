// Published QK-norm schemes by name: what each sets (DESIGN section 5; facts and sources in docs/presets.md). A preset is only a
// set of choices: the resolved values are what is printed, stored and run.
#pragma once

#include "config/describe.h"
#include "ops/options.h"

namespace quell {

enum class Preset {
  qwen3, olmo2, gemma3, cohere, stablelm2, chameleon, persimmon, hunyuan, minimax_m2, llama4, nanochat, timm, vit22b, swinv2,
  henry2020, ngpt
};
template <>
inline constexpr auto choices<Preset> = std::array{
    Choice{Preset::qwen3, "qwen3"},           Choice{Preset::olmo2, "olmo2"},         Choice{Preset::gemma3, "gemma3"},
    Choice{Preset::cohere, "cohere"},         Choice{Preset::stablelm2, "stablelm2"}, Choice{Preset::chameleon, "chameleon"},
    Choice{Preset::persimmon, "persimmon"},   Choice{Preset::hunyuan, "hunyuan"},     Choice{Preset::minimax_m2, "minimax_m2"},
    Choice{Preset::llama4, "llama4"},         Choice{Preset::nanochat, "nanochat"},   Choice{Preset::timm, "timm"},
    Choice{Preset::vit22b, "vit22b"},         Choice{Preset::swinv2, "swinv2"},       Choice{Preset::henry2020, "henry2020"},
    Choice{Preset::ngpt, "ngpt"}};

// Overwrites both structs with the preset's values.
void apply_preset(Preset preset, int64_t head_width, QkNormOptions& qk_norm, ScaleOptions& scale);

// Weight decay of the QK-norm weights in the authors' recipe; absent where they are not decayed.
Optional<double> preset_qk_norm_decay(Preset preset);

}  // namespace quell
