// Counts by formula against the built model, for every family, preset and the configurations that we ship.
#include <catch2/catch.hpp>

#include <fstream>

#include "config/load.h"
#include "nn/count.h"
#include "nn/decoder.h"

namespace quell {
namespace {

int64_t built(const DecoderConfig& config) {
  ParameterList parameters;
  const Decoder model(parameters, config);
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
DecoderConfig model_of(const std::string& file) {
  std::ifstream in(std::string(QUELL_SOURCE) + "/configs/" + file);
  std::string text, line;
  bool inside = false;
  while (std::getline(in, line)) {
    if (!line.empty() && line[0] != ' ' && line[0] != '#') inside = line.starts_with("model:");
    if (inside) text += line + "\n";
  }
  return std::get<DecoderConfig>(config::load<Shipped>(config::Source::from_text(text, file)).model);
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
  std::vector<DecoderConfig> all(13, small());
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
  for (const DecoderConfig& config : all) CHECK(count_parameters(config) == built(config));
}

TEST_CASE("the shipped configurations have the published numbers of parameters", "[unit]") {
  CHECK(count_parameters(model_of("gpt2_124m.yaml")) == 124'439'808);
  CHECK(count_parameters(model_of("qwen3_0.6b.yaml")) == 596'049'920);
  CHECK(count_parameters(model_of("olmo2_1b.yaml")) == 1'484'916'736);
  CHECK(count_parameters(model_of("gemma3_1b.yaml")) == 999'885'952);
}

TEST_CASE("FLOPs a token are six a weight in products, plus attention over the visible keys", "[unit]") {
  DecoderConfig config = small();
  config.context = 8;
  config.mlp = {.kind = MlpKind::gelu, .width = 100};
  const double weights = 3 * (48 * 64 * 4 + 2 * 48 * 100) + 61 * 48;
  const double keys = (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8) / 8.0;
  CHECK(flops_per_token(config) == Approx(6 * weights + 3 * 12 * 64 * keys));
  config.attention.window = 3;
  CHECK(flops_per_token(config) == Approx(6 * weights + 3 * 12 * 64 * (1 + 2 + 3 * 6) / 8.0));
}

}  // namespace quell
