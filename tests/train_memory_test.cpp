// What is said of memory before a run, against the run.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "nn/count.h"
#include "tensors/memory.h"
#include "train/memory.h"
#include "train/objective.h"
#include "train_support.h"

namespace quell {
namespace {

double bytes_of(const std::vector<MemoryClass>& classes, const std::string& name) {
  for (const MemoryClass& c : classes) {
    if (c.name == name) return c.bytes;
  }
  return -1;
}

// Every kind of model and block in a few variants; sizes at which one operation's memory is far above what a tensor of a few
// numbers takes.
std::vector<std::pair<std::string, RunConfig>> variants(const testing::TinyText& text, const testing::TinyImages& images) {
  RunConfig decoder = testing::tiny_config(text);
  DecoderConfig& model = testing::model_of(decoder);
  model.context = 64;
  model.width = 128;
  model.heads = 4;
  model.layers = 2;
  model.mlp.width = 352;
  batch_of(decoder.data) = 8;
  decoder.threads = 1;
  RunConfig vit = testing::tiny_vision(images);
  vit.threads = 1;
  auto& vision = std::get<VitConfig>(vit.model);
  vision.width = 128;
  vision.heads = 4;
  vision.image = 48;
  vision.mlp.width = 512;
  batch_of(vit.data) = 32;

  std::vector<std::pair<std::string, RunConfig>> all{{"decoder", decoder}, {"vit", vit}};
  const auto add = [&](const std::string& name, const RunConfig& base, auto change) {
    all.emplace_back(name, base);
    change(all.back().second);
  };
  const auto decoder_of = [](RunConfig& c) -> DecoderConfig& { return std::get<DecoderConfig>(c.model); };
  add("bf16", decoder, [](RunConfig& c) { c.precision = Precision::bf16; });
  add("fp64", decoder, [](RunConfig& c) { c.precision = Precision::fp64; });
  add("twins", decoder, [](RunConfig& c) { c.kernels = Kernels::reference; });
  add("micro-batches", decoder, [](RunConfig& c) { c.micro_batches = 2; });
  add("grouped heads", decoder, [&](RunConfig& c) { decoder_of(c).kv_heads = 2; });
  add("layernorm, gelu, learned positions", decoder, [&](RunConfig& c) {
    decoder_of(c).norm = {.kind = NormKind::layernorm, .bias = true};
    decoder_of(c).mlp = {.kind = MlpKind::gelu_tanh, .width = 512, .bias = true};
    decoder_of(c).position.kind = PositionKind::learned;
    decoder_of(c).attention.qk_norm.kind = NormKind::none;
  });
  add("norm of the projection, after, sandwich", decoder, [&](RunConfig& c) {
    decoder_of(c).norm.place = NormPlace::sandwich;
    decoder_of(c).attention.qk_norm.axis = NormAxis::projection;
  });
  add("soft-cap", decoder, [&](RunConfig& c) { decoder_of(c).attention.softcap = 30; });
  add("soft-cap in bf16 with groups", decoder, [&](RunConfig& c) {
    decoder_of(c).attention.softcap = 30;
    decoder_of(c).kv_heads = 2;
    c.precision = Precision::bf16;
  });
  add("dropout", decoder, [&](RunConfig& c) {
    decoder_of(c).dropout = 0.1;
    decoder_of(c).attention.dropout = 0.1;
  });
  add("a learned scale and LayerScale", decoder, [&](RunConfig& c) {
    decoder_of(c).attention.scale = {.kind = ScaleKind::learned, .init = 10.0};
    decoder_of(c).layer_scale = 0.1;
  });
  add("parallel blocks, bf16 vit", vit, [](RunConfig& c) {
    transformer(c.model).block = BlockKind::parallel;
    c.precision = Precision::bf16;
  });
  add("attention pooling", vit, [](RunConfig& c) { std::get<VitConfig>(c.model).pool = {.kind = PoolKind::attention}; });
  add("a class token and registers", vit, [](RunConfig& c) {
    auto& v = std::get<VitConfig>(c.model);
    v.class_token = true;
    v.registers = 3;
    v.pool.kind = PoolKind::token;
  });
  add("a frozen beginning", decoder, [](RunConfig& c) { c.optimizer.freeze = {"embedding.*", "blocks.0.*"}; });
  return all;
}

// Bytes that a forward pass leaves in use: the logits and what is saved for the backward. The first pass makes what lives as long as
// the model (rotary tables), so that of the second is taken.
double left_by_forward(Run& run) {
  double left = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const Batch batch = run.batches(0).front();
    const uint64_t before = memory_use().in_use;
    const at::Tensor logits = run.objective.logits(run.forward(batch, true), batch);
    left = static_cast<double>(memory_use().in_use - before);
  }
  return left;
}

}  // namespace

TEST_CASE("values, copies, gradients and moments are planned to the byte", "[unit]") {
  const testing::TinyText text;
  const testing::TinyImages images;
  for (const auto& [name, config] : variants(text, images)) {
    INFO(name);
    const Run run(config, {});
    const std::vector<MemoryClass> classes = memory_classes(run.config, outputs_of(run.config));
    CHECK(bytes_of(classes, "weights") == static_cast<double>(run.arena.values().nbytes()));
    CHECK(bytes_of(classes, "gradients") == static_cast<double>(run.arena.gradients().nbytes()));
    CHECK(bytes_of(classes, "optimizer moments") == 2 * static_cast<double>(run.arena.gradients().nbytes()));
    const bool bf16 = config.precision == Precision::bf16;
    CHECK(bytes_of(classes, "bf16 copies") == (bf16 ? 2 * static_cast<double>(run.arena.values().numel()) : 0));
  }
}

TEST_CASE("what a forward pass leaves in memory is what was planned", "[unit]") {
  keep_step_memory();
  const testing::TinyText text;
  const testing::TinyImages images;
  for (const auto& [name, config] : variants(text, images)) {
    INFO(name);
    Run run(config, {});
    const std::vector<MemoryClass> classes = memory_classes(run.config, outputs_of(run.config));
    const double planned = bytes_of(classes, "activations") + bytes_of(classes, "attention scores") + bytes_of(classes, "output logits");
    const double left = left_by_forward(run);
    // What is left out on purpose is a number a row (statistics of the twins) or a sample: at widths of 128 and more than 64 tensors
    // of a row's width, less than a two-hundredth.
    INFO(planned << " planned, " << left << " left");
    CHECK(std::abs(planned / left - 1) < 0.005);
  }
}

TEST_CASE("what runs out of memory is told the classes and what helps", "[unit]") {
  const testing::TinyText text;
  const RunConfig config = testing::tiny_config(text);
  const std::string message = out_of_memory_message(config, 40);
  CHECK_THAT(message, Catch::StartsWith("memory: the machine's ") && Catch::Contains("by formula the largest part is "));
  CHECK_THAT(message, Catch::Contains("what helps: a larger micro_batches (now 1)"));
}

}  // namespace quell
