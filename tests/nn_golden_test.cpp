// Our attention and our decoders against the implementations that users trust: golden files written by scripts/golden from
// transformers (and, for henry2020 and ngpt, from float64 references of the papers' formulas). fp64 agrees to 1e-10; fp32 within
// the criterion of DESIGN section 7, with the readable twins' run as the twin.
#include <catch2/catch.hpp>

#include "checkpoint/safetensors.h"
#include "config/load.h"
#include "config/print.h"
#include "nn/model.h"
#include "ops/loss.h"
#include "support.h"
#include "tensors/fill.h"

namespace quell {
namespace {

using testing::as_accurate_as;

struct Document {
  ModelConfig model;
};
template <class V>
void describe(V& v, Document& d) {
  v.field("model", d.model, help("The golden file's model."));
}

ModelConfig model_of(const SafetensorsFile& file) {
  std::string indented = "model:\n  ";
  for (const char c : file.metadata().at("model")) {
    indented += c;
    if (c == '\n') indented += "  ";
  }
  return config::load<Document>(config::Source::from_text(indented, "golden")).model;
}

SafetensorsFile golden(const std::string& name) { return SafetensorsFile(std::string(QUELL_GOLDEN) + "/" + name + ".safetensors"); }

void set_parameters(ParameterList& parameters, Arena& arena, const SafetensorsFile& file) {
  at::NoGradGuard no_gradients;
  for (Parameter& parameter : parameters) {
    INFO(parameter.name);
    REQUIRE(file.has(parameter.name));
    REQUIRE(file.shape(parameter.name) == parameter.shape);
    parameter.value.copy_(file.read(parameter.name));
  }
  arena.refresh_compute();
}

// Outputs and gradients by name.
using Results = std::map<std::string, at::Tensor>;

void collect_gradients(Results& results, const ParameterList& parameters, const Arena& arena) {
  for (const Parameter& parameter : parameters) {
    results["grad." + parameter.name] = arena.view(arena.gradients(), parameter).clone();
  }
}

Results run_attention(const SafetensorsFile& file, Precision precision, Kernels kernels) {
  const auto model = std::get<DecoderConfig>(model_of(file));
  ParameterList parameters;
  const Attention attention(parameters, "", 1, 0, model, layer_variant(model, 0));
  for (Parameter& parameter : parameters) parameter.name.erase(0, 1);  // golden names have no prefix
  Arena arena(parameters, {.precision = precision});
  set_parameters(parameters, arena, file);
  Forward forward;
  forward.kernels = kernels;
  const at::ScalarType type = arena.master_type();
  const at::Tensor x = file.read("x").to(type).requires_grad_();
  const at::Tensor out = attention(forward, x);
  out.backward(file.read("grad.out").to(type));
  Results results{{"out", out.detach()}, {"grad.x", x.grad()}};
  collect_gradients(results, parameters, arena);
  return results;
}

Results run_model(const SafetensorsFile& file, Precision precision, Kernels kernels) {
  ParameterList parameters;
  const Decoder model(parameters, std::get<DecoderConfig>(model_of(file)));
  Arena arena(parameters, {.precision = precision});
  set_parameters(parameters, arena, file);
  Forward forward;
  forward.kernels = kernels;
  const at::Tensor x = model(forward, file.read("tokens"));
  const at::Tensor logits = model.logits(x.flatten(0, 1), kernels);
  Results results{{"logits", logits.detach().clone().view({x.size(0), x.size(1), -1})}};
  const ops::LossSums loss = ops::output_loss(logits, file.read("targets").flatten(), {.kernels = kernels});
  loss.objective.backward();
  results["loss_sum"] = loss.cross_entropy.detach();
  CHECK(loss.count.item<int64_t>() == file.read("targets_count").item<int64_t>());
  collect_gradients(results, parameters, arena);
  return results;
}

Results run_vit(const SafetensorsFile& file, Precision precision, Kernels kernels) {
  ParameterList parameters;
  const Vit model(parameters, std::get<VitConfig>(model_of(file)));
  Arena arena(parameters, {.precision = precision});
  set_parameters(parameters, arena, file);
  Forward forward;
  forward.kernels = kernels;
  const at::Tensor logits = model(forward, file.read("images").to(arena.master_type()));
  Results results{{"logits", logits.detach().clone()}};
  const at::Tensor labels = file.read("labels");
  const ops::LossSums loss = ops::output_loss(logits, labels, {.kernels = kernels});
  (loss.objective / labels.numel()).backward();
  results["loss"] = loss.cross_entropy.detach() / labels.numel();
  collect_gradients(results, parameters, arena);
  return results;
}

// Where the truth is zero by a law (softmax does not see a bias of k), rounding is all there is: the error is then taken relative
// to the gradient of the same projection's weight.
double size_of(const SafetensorsFile& file, const std::string& name) {
  const double size = testing::largest(file.read(name));
  if (size > 1e-12) return size;
  return testing::largest(file.read(name.substr(0, name.rfind('.')) + ".weight"));
}

// fp32 by the criterion of DESIGN section 7: of each tensor alone, or, where tensors of eight elements may be exact in the twin by luck
// (the criterion is for many), of all tensors of a file together, each relative to its size.
enum class Judged { alone, together };

// Each tensor is held, besides, by the bound that the generator holds torch to.
void compare(const SafetensorsFile& file, Results (*run)(const SafetensorsFile&, Precision, Kernels), Judged judged = Judged::alone) {
  const Results exact = run(file, Precision::fp64, Kernels::reference);
  const Results fast = run(file, Precision::fp32, Kernels::automatic);
  const Results twin = run(file, Precision::fp32, Kernels::reference);
  std::vector<at::Tensor> all_fast, all_twin, all_truth;
  for (const auto& [name, value] : exact) {
    INFO(name);
    const at::Tensor truth = file.read(name);
    REQUIRE(value.sizes() == truth.sizes());
    const double size = size_of(file, name);
    CHECK(testing::largest(value - truth) <= 1e-10 * size);
    if (testing::largest(truth) <= 1e-12) continue;
    if (judged == Judged::alone) CHECK(as_accurate_as(fast.at(name), twin.at(name), truth));
    CHECK(testing::largest(fast.at(name).to(at::kDouble) - truth) <= 2e-5 * size);
    CHECK(testing::largest(twin.at(name).to(at::kDouble) - truth) <= 2e-5 * size);
    all_fast.push_back(fast.at(name).to(at::kDouble).flatten() / size);
    all_twin.push_back(twin.at(name).to(at::kDouble).flatten() / size);
    all_truth.push_back(truth.flatten() / size);
  }
  CHECK(as_accurate_as(at::cat(all_fast), at::cat(all_twin), at::cat(all_truth)));
}

}  // namespace

TEST_CASE("an attention block of every preset equals its published implementation", "[unit]") {
  const std::string preset = GENERATE("qwen3", "olmo2", "gemma3", "cohere", "stablelm2", "chameleon", "persimmon", "hunyuan",
                                      "minimax_m2", "llama4", "nanochat", "henry2020", "ngpt", "timm", "vit22b", "swinv2");
  INFO(preset);
  compare(golden("attention_" + preset), run_attention);
}

TEST_CASE("the golden block of a preset has the QK-norm and scale that the preset sets", "[unit]") {
  const auto choice = GENERATE(from_range(choices<Preset>.begin(), choices<Preset>.end()));
  INFO(choice.name);
  const auto model = std::get<DecoderConfig>(model_of(golden(std::string("attention_") + choice.name)));
  QkNormOptions qk_norm;
  ScaleOptions scale;
  apply_preset(choice.value, model.head(), qk_norm, scale);
  CHECK(config::print(qk_norm) == config::print(model.attention.qk_norm));
  if (choice.value != Preset::gemma3 && choice.value != Preset::henry2020) CHECK(config::print(scale) == config::print(model.attention.scale));
}

TEST_CASE("whole models equal those of transformers: logits, loss and every gradient", "[unit]") {
  const std::string family = GENERATE("gpt2", "llama3", "qwen3", "olmo2", "gemma3");
  INFO(family);
  compare(golden("model_" + family), run_model);
}

TEST_CASE("vision transformers equal those of timm and transformers: logits, loss and every gradient", "[unit]") {
  const std::string name = GENERATE("timm_plain", "timm_qk", "timm_map", "timm_map_qk", "22b", "hf");
  INFO(name);
  compare(golden("vit_" + name), run_vit, Judged::together);
}

TEST_CASE("a variant inherits what overrides its model's preset, and may set a preset of its own", "[unit]") {
  const auto source = config::Source::from_text(
      "model: {attention: {preset: qwen3, qk_norm: {eps: 1e-3}}, variants: {near: {window: 4}, own: {preset: olmo2}}, "
      "pattern: [near, own]}\n", "variants.yaml");
  const auto model = std::get<DecoderConfig>(config::load<Document>(source).model);
  CHECK(model.variants.at("near").attention.qk_norm.eps == 1e-3);
  CHECK(model.variants.at("near").attention.window == 4);
  CHECK(model.variants.at("own").attention.qk_norm.axis == NormAxis::projection);
}

TEST_CASE("a shared weight over a projection is one weight for each of its heads", "[unit]") {
  DecoderConfig model;
  model.width = 32;
  model.heads = 4;
  model.kv_heads = 2;
  const at::Tensor x = testing::random_tensor({2, 5, 32}, 3, at::kDouble), w = testing::uniform_tensor({8}, 4, 0.5, 1.5, at::kDouble);
  const auto run = [&](NormWeight weight) {
    model.attention.qk_norm = {.axis = NormAxis::projection, .weight = weight};
    ParameterList parameters;
    const Attention attention(parameters, "a", 1, 0, model, layer_variant(model, 0));
    Arena arena(parameters, {.precision = Precision::fp64});
    fill(parameters, arena, 1);
    for (Parameter& parameter : parameters) {
      at::NoGradGuard no_gradients;
      if (parameter.role == Role::qk_norm_weight) parameter.value.copy_(w.repeat({parameter.numel() / 8}));
    }
    const at::Tensor out = attention(Forward{}, x);
    out.sum().backward();
    return std::pair{out.detach(), parameters.find("a.q_norm.weight")->value.grad().clone()};
  };
  const auto [shared, shared_gradient] = run(NormWeight::shared);
  const auto [whole, whole_gradient] = run(NormWeight::projection);
  CHECK(at::equal(shared, whole));
  REQUIRE(shared_gradient.numel() == 8);
  CHECK(testing::largest(shared_gradient - whole_gradient.view({4, 8}).sum(0)) <= 1e-12 * testing::largest(whole_gradient));
}

}  // namespace quell
