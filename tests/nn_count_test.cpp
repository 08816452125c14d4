// Counts by formula against the built model, for every family, preset and the configurations that we ship.
#include <catch2/catch.hpp>

#include <fstream>

#include "config/load.h"
#include "nn/count.h"
#include "nn/model.h"

namespace quell {
namespace {

int64_t built(const ModelConfig& config) {
  ParameterList parameters;
  make_model(parameters, config);
  return parameters.numel();
}

DecoderConfig small() {
  DecoderConfig config;
  config.vocabulary = 61;
  config.width = 48;
  config.layers = 3;
  config.heads = 4;
  config.head_width = 16;
  return config;
}

struct Shipped {
  ModelConfig model;
};
template <class V>
void describe(V& v, Shipped& s) {
  v.field("model", s.model, help("Only the model of a run file is looked at."));
}

// The `model` section of a file in configs/, cut out as text.
ModelConfig model_of(const std::string& file) {
  std::ifstream in(std::string(QUELL_SOURCE) + "/configs/" + file);
  std::string text, line;
  bool inside = false;
  while (std::getline(in, line)) {
    if (!line.empty() && line[0] != ' ' && line[0] != '#') inside = line.starts_with("model:");
    if (inside) text += line + "\n";
  }
  return config::load<Shipped>(config::Source::from_text(text, file)).model;
}

}  // namespace

TEST_CASE("the formula counts the built model's parameters for every preset, grouped heads or not", "[unit]") {
  for (const auto& preset : choices<Preset>) {
    for (const int64_t kv_heads : {4, 2, 1}) {
      DecoderConfig config = small();
      config.kv_heads = kv_heads;
      apply_preset(preset.value, 16, config.attention.qk_norm, config.attention.scale);
      if (config.attention.qk_norm.tie_qk && kv_heads != 4) continue;  // refused
      if (preset.value == Preset::henry2020) config.attention.scale.length = 72;
      INFO(preset.name << ", " << kv_heads << " key/value heads");
      CHECK(count_parameters(config) == built(config));
    }
  }
}

TEST_CASE("the formula counts every other part of a model", "[unit]") {
  std::vector<DecoderConfig> all(16, small());
  all[0].mlp = {.kind = MlpKind::gelu, .bias = true};
  all[1].mlp = {.kind = MlpKind::geglu, .bias = true};
  all[2].norm.place = NormPlace::sandwich;
  all[3].norm = {.kind = NormKind::layernorm, .bias = true};
  all[4].norm.weight = false;
  all[5].position.kind = PositionKind::learned;
  all[6].embedding.norm = true;
  all[7].output.tied = true;
  all[8].attention.bias = AttentionBias::qkv;
  all[9].attention.bias = AttentionBias::all;
  all[10].attention.qk_norm.axis = NormAxis::projection;  // with the shared weight of [D]
  all[11].attention.qk_norm = {.kind = NormKind::layernorm, .axis = NormAxis::projection, .weight = NormWeight::none, .bias = true};
  all[12].kv_heads = 2;
  all[12].attention.qk_norm = {.axis = NormAxis::projection, .tie_qk = true};
  all[13].block = BlockKind::parallel;
  all[13].layer_scale = 0.1;
  all[14].layer_scale = 0.1;
  all[15].attention.bias = AttentionBias::out;
  for (const DecoderConfig& config : all) CHECK(count_parameters(config) == built(config));
}

TEST_CASE("the formula counts every part of a vision transformer", "[unit]") {
  VitConfig small;
  small.image = 12;
  small.patch = 4;
  small.classes = 7;
  small.width = 32;
  small.layers = 2;
  std::vector<VitConfig> all(8, small);
  all[1].class_token = true;
  all[1].pool.kind = PoolKind::token;
  all[2].registers = 3;
  all[3].pool.kind = PoolKind::attention;
  all[4].pool = {.kind = PoolKind::attention, .norm = PoolNorm::after, .qk_norm = true};
  all[5].position.kind = PositionKind::sincos;
  all[6].channels = 1;
  all[7].block = BlockKind::parallel;
  for (const VitConfig& config : all) CHECK(count_parameters(config) == built(config));
}

TEST_CASE("the shipped configurations have the published numbers of parameters", "[unit]") {
  CHECK(count_parameters(model_of("gpt2_124m.yaml")) == 124'439'808);
  CHECK(count_parameters(model_of("qwen3_0.6b.yaml")) == 596'049'920);
  CHECK(count_parameters(model_of("olmo2_1b.yaml")) == 1'484'916'736);
  CHECK(count_parameters(model_of("gemma3_1b.yaml")) == 999'885'952);
  // timm's models have a position for the class token too, which here is part of that token, and no QK-norm: 12 x 2 x (64 + 64).
  CHECK(count_parameters(model_of("vit_s16.yaml")) == 22'050'664 - 384 + 3'072);
  CHECK(count_parameters(model_of("vit_b16.yaml")) == 86'567'656 - 768 + 3'072);
}

TEST_CASE("FLOPs of a sample are six a token and weight in products, plus attention over the visible keys", "[unit]") {
  DecoderConfig config = small();
  config.context = 8;
  config.mlp = {.kind = MlpKind::gelu, .width = 100};
  const double weights = 3 * (48 * 64 * 4 + 2 * 48 * 100) + 61 * 48;
  const double keys = (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8) / 8.0;
  CHECK(flops_per_sample(config) == Approx(8 * (6 * weights + 3 * 12 * 64 * keys)));
  config.attention.window = 3;
  CHECK(flops_per_sample(config) == Approx(8 * (6 * weights + 3 * 12 * 64 * (1 + 2 + 3 * 6) / 8.0)));
}

TEST_CASE("FLOPs of an image count patches, tokens and what is done once", "[unit]") {
  VitConfig config;
  config.image = 12;
  config.patch = 4;
  config.classes = 7;
  config.width = 32;
  config.layers = 2;
  config.heads = 2;
  config.mlp.width = 100;
  config.registers = 1;
  const double block = 32 * 32 * 4 + 2 * 32 * 100, tokens = 10, patches = 9, patch_values = 3 * 4 * 4;
  const double blocks = 2 * tokens * (6 * block + 12 * 32 * tokens);
  CHECK(flops_per_sample(config) == Approx(blocks + 6 * (patches * patch_values * 32 + 7 * 32)));
  config.pool.kind = PoolKind::attention;
  const double pool = patches * 2 * 32 * 32 + 2 * 32 * 32 + 2 * 32 * 100;
  CHECK(flops_per_sample(config) == Approx(blocks + 6 * (patches * patch_values * 32 + 7 * 32 + pool)));
}

}  // namespace quell
