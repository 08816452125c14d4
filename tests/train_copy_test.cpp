// The copy task and random tokens in a run: what is scored and counted, what may be written, and the property that the mass of
// attention on the right key never exceeds what the norm's bound allows.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"
#include "config/load.h"
#include "ops/reference.h"
#include "support.h"
#include "train/evaluate.h"
#include "train/metrics.h"
#include "train/step.h"

namespace quell {
namespace {

using Settings = std::vector<std::string>;

const std::string base = R"(name: copy
steps: 40
threads: 1
model: {context: 16, width: 32, layers: 2, heads: 2, mlp: {width: 48}, position: {kind: learned}}
data: {kind: copy, batch: 8, symbols: 6, length: 8}
evaluate: {sets: [{name: valid, data: copy}], every: 0, batches: 3}
optimizer: {lr: 0.02, schedule: {kind: constant}}
)";

RunConfig loaded(const Settings& settings) {
  std::vector<config::Override> overrides;
  for (const std::string& setting : settings) overrides.push_back({setting, false});
  return config::load<RunConfig>(config::Source::from_text(base, "base", overrides));
}

void train_steps(Run& run, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) train_step(run, step, nullptr);
}

const Settings random_tokens{"data={kind: random, batch: 8, vocabulary: 6}", "evaluate.sets.0.data=random"};

}  // namespace

TEST_CASE("a step of the copy task scores the copy and nothing else, and the model's vocabulary is the data's", "[unit]") {
  Run run(loaded({"micro_batches=2"}), {});
  CHECK(*std::get<DecoderConfig>(run.config.model).vocabulary == 7);
  CHECK(train_step(run, 0, nullptr).totals.targets() == 8 * 8);
}

TEST_CASE("the share of exact copies is that of a count by hand, in however many parts and for any seed", "[unit]") {
  Run run(loaded({}), {});
  LossTotals totals = evaluate(run).at(0).totals;
  for (int64_t step = 0; step < 200 && totals.exact_match() == 0; ++step) {  // until some are copied, not all
    train_step(run, step, nullptr);
    totals = evaluate(run).at(0).totals;
  }
  const Batch batch = to_tensors(read(run.evaluations.at(0).data, 0, 24));
  at::NoGradGuard no_gradients;
  const at::Tensor logits_NV = run.objective.logits(run.forward(batch, false), batch);
  const at::Tensor guess_BT = logits_NV.argmax(1).view({24, 16});
  int64_t exact = 0, correct = 0;
  for (int64_t b = 0; b < 24; ++b) {
    int64_t right = 0;
    for (int64_t t = 8; t < 16; ++t) right += guess_BT[b][t].item<int64_t>() == batch.targets_BT[b][t].item<int64_t>();
    exact += right == 8;
    correct += right;
  }
  REQUIRE((exact > 0 && exact < 24));  // else the test could not tell
  CHECK(totals.exact_match() == static_cast<double>(exact) / 24);
  CHECK(totals.accuracy() == static_cast<double>(correct) / (24 * 8));

  Json row;
  add_evaluation(row, evaluate(run).at(0));
  CHECK(row.at("valid.exact_match") == totals.exact_match());
  CHECK(row.at("valid.attention.copy_mass").size() == 2);
  CHECK(row.at("valid.heads.copy_mass").at(1).size() == 2);

  Run parts(loaded({"micro_batches=4", "seed=2"}), {});
  CHECK(read(parts.evaluations.at(0).data, 0, 24).inputs == read(run.evaluations.at(0).data, 0, 24).inputs);
  Run other(loaded({"micro_batches=4"}), {});
  at::NoGradGuard guard;
  for (const Parameter& parameter : run.parameters) other.parameters.find(parameter.name)->value.copy_(parameter.value);
  CHECK(evaluate(other).at(0).totals.exact_match() == totals.exact_match());
}

TEST_CASE("a model that copies reads each symbol from the string and from nowhere else", "[unit]") {
  Run run(loaded({"steps=150", "optimizer.lr=0.01"}), {});
  train_steps(run, 150);
  REQUIRE(evaluate(run).at(0).totals.accuracy() > 0.9);
  Batch batch = to_tensors(read(run.evaluations.at(0).data, 0, 24));
  const at::Tensor last_B = batch.targets_BT.select(1, 15), other_B = (last_B + 1).remainder(6);
  batch.inputs_BT.select(1, 7).copy_(other_B);  // where the string ends; what is to be copied stands nowhere else
  at::NoGradGuard no_gradients;
  const at::Tensor guess_BT = run.objective.logits(run.forward(batch, false), batch).argmax(1).view({24, 16});
  CHECK(guess_BT.select(1, 15).eq(other_B).sum().item<int64_t>() > 18);
  CHECK(guess_BT.select(1, 15).eq(last_B).sum().item<int64_t>() < 6);
}

TEST_CASE("data that are no copy task have neither exact match nor a mass", "[unit]") {
  Run run(loaded(random_tokens), {});
  Json row;
  add_evaluation(row, evaluate(run).at(0));
  CHECK(row.contains("valid.accuracy"));
  CHECK_FALSE(row.contains("valid.exact_match"));
  CHECK_FALSE(row.contains("valid.attention.copy_mass"));
}

TEST_CASE("the loss on random tokens stays at log vocabulary, whatever is learned", "[unit]") {
  Run run(loaded(random_tokens), {});
  CHECK(*std::get<DecoderConfig>(run.config.model).vocabulary == 6);
  CHECK(evaluate(run).at(0).totals.cross_entropy() == Approx(std::log(6)));  // of a zero head
  train_steps(run, 30);
  const LossTotals totals = evaluate(run).at(0).totals;
  CHECK(totals.targets() == 24 * 16);
  at::NoGradGuard no_gradients;
  const Batch batch = to_tensors(read(run.evaluations.at(0).data, 0, 24));
  const at::Tensor losses_NV = -at::log_softmax(run.objective.logits(run.forward(batch, false), batch).to(at::kDouble), 1);
  // A target is any token with the same probability, so a row's expected loss is the mean over the tokens, which is at least
  // log V; the sum over the rows deviates from that by chance alone: six deviations are allowed.
  const at::Tensor expected_N = losses_NV.mean(1);
  CHECK(expected_N.min().item<double>() >= std::log(6) - 1e-12);
  const double deviation = std::sqrt(losses_NV.var(1, /*unbiased=*/false).sum().item<double>()) / totals.targets();
  CHECK(std::abs(totals.cross_entropy() - expected_N.mean().item<double>()) < 6 * deviation);
  CHECK(deviation < 0.1);
}

TEST_CASE("the mass on watched keys is the attention weight by its formula", "[unit]") {
  const int64_t B = 2, T = 6, H = 4, G = 2, D = 8;
  const at::Tensor q = testing::random_tensor({B, T, H, D}, 1), k = testing::random_tensor({B, T, G, D}, 2);
  const at::Tensor keys_BT = at::tensor(std::vector<int64_t>{-1, 0, 2, 1, 0, 5, 0, 1, -1, 3, 4, 2}).view({B, T});
  const ops::AttentionSpec spec{.scale = 0.7};
  const at::Tensor weights_BHT = ops::reference::attention_weights(q, k, keys_BT, spec);
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t t = 0; t < T; ++t) {
        const int64_t key = keys_BT[b][t].item<int64_t>();
        double total = 0, wanted = 0;
        for (int64_t s = 0; s <= t; ++s) {
          const double e = std::exp(0.7 * (q[b][t][h].to(at::kDouble) * k[b][s][h / 2].to(at::kDouble)).sum().item<double>());
          total += e;
          if (s == key) wanted = e;
        }
        CHECK(weights_BHT[b][h][t].item<double>() == Approx(wanted / total).margin(0));
      }
    }
  }
}

namespace {

// 1 where there is no such parameter.
double largest_value(const Run& run, const std::string& name) {
  for (const Parameter& parameter : run.parameters) {
    if (parameter.name == name) return parameter.value.abs().max().item<double>();
  }
  return 1;
}

// The largest |logit| that the norm and the scale of a layer allow (a property of q's and k's norms alone).
double logit_bound(const Run& run, int64_t layer) {
  const AttentionConfig& attention = transformer(run.config.model).attention;
  const std::string name = cat("blocks.", layer, ".attention.");
  double bound = largest_value(run, name + "q_norm.weight") * largest_value(run, name + "k_norm.weight");
  if (attention.qk_norm.kind == NormKind::rmsnorm) bound *= static_cast<double>(transformer(run.config.model).head());
  if (attention.scale.kind != ScaleKind::learned)
    return bound * initial_factor(attention.scale, transformer(run.config.model).head());
  return bound * blocks_of(run.model)[static_cast<size_t>(layer)].attention().learned_factor().abs().max().item<double>();
}

// The mean over the copy's positions of the largest mass that one of t + 1 visible keys can have where no two logits are more
// than twice the bound apart: 1 / (1 + t exp(-2 bound)).
double ceiling(double bound, int64_t length) {
  double sum = 0;
  for (int64_t t = length; t < 2 * length; ++t) sum += 1 / (1 + static_cast<double>(t) * std::exp(-2 * bound));
  return sum / static_cast<double>(length);
}

}  // namespace

TEST_CASE("attention never puts more on the right key than the bound of its logits allows", "[unit]") {
  const auto [settings, is_near] =
      GENERATE(table<std::string, bool>({{"{qk_norm: {kind: l2, weight: none}, scale: {kind: constant, value: 1}}", true},
                                         {"{qk_norm: {kind: l2, weight: none}, scale: {kind: constant, value: 2}}", true},
                                         {"{qk_norm: {kind: rmsnorm, weight: none}}", false},
                                         {"{qk_norm: {kind: rmsnorm}}", false},
                                         {"{preset: henry2020, scale: {init: 1}}", false},
                                         {"{preset: henry2020, scale: {init: 1, per_head: true}}", false},
                                         {"{preset: swinv2, scale: {init: 1}}", false}}));
  INFO(settings);
  Run run(loaded({"model.attention=" + settings, "steps=150", "optimizer.lr=0.01"}), {});
  double largest = 0, share = 0;
  for (int64_t step = 0; step <= 150; ++step) {
    if (step % 50 == 0) {
      const Evaluation seen = evaluate(run).at(0);
      REQUIRE(seen.health.layers.size() == 2);
      for (int64_t layer = 0; layer < 2; ++layer) {
        const double allowed = ceiling(logit_bound(run, layer), 8);
        for (const double mass : seen.health.layers[static_cast<size_t>(layer)].copy_mass) {
          CHECK(mass > 0);
          CHECK(mass <= allowed * (1 + 1e-5));  // fp32's rounding of logits of a few units
          largest = std::max(largest, mass);
          share = std::max(share, mass / allowed);
        }
      }
    }
    if (step < 150) train_step(run, step, nullptr);
  }
  CHECK(largest > 0.1);  // above the even 1/12: it is the right key that is looked at
  if (is_near) CHECK(share > 0.5);
}

TEST_CASE("settings that drawn data cannot honour are errors", "[unit]") {
  const auto complaint = [](const Settings& settings) {
    try {
      loaded(settings);
    } catch (const UsageError& problem) {
      return std::string(problem.what());
    }
    return std::string("none");
  };
  const auto expect = [&](const Settings& settings, const std::string& message) {
    INFO(message);
    CHECK_THAT(complaint(settings), Catch::Contains(message));
  };
  CHECK(complaint({}) == "none");
  expect({"data.length=9"},
         "base:4:18: model.context: 16 is not twice data.length 9\n"
         "    4 | model: {context: 16, width: 32, layers: 2, heads: 2, mlp: {width: ...\n"
         "      |                  ^^\n"
         "  set it to 18: the string, the separator, and the string but for its last\n    symbol");
  expect({"model.vocabulary=6"}, "model.vocabulary: 6 is less than the data's 7\n");
  expect({"model.vocabulary=6"}, "\n  leave it out, or set it to that or more");
  expect({"evaluate.sets.0.data=data/kjv/valid"}, "evaluate.sets.0.data: copy data are drawn, not read\n");
  expect({"evaluate.sets.0.data=data/kjv/valid"}, "\n  write copy: samples of this set's own");
  expect({"evaluate.batches=all"}, "evaluate.batches: copy data have no end\n");
  expect({"evaluate.batches=all"}, "\n  set a number of batches");
  expect({"epochs=2"}, "epochs: copy data have no end\n");
  expect({"epochs=2"}, "\n  set steps, tokens or time");
  expect({"data={kind: random, batch: 8, vocabulary: 9}", "evaluate.sets=[]", "model.vocabulary=8"},
         "model.vocabulary: 8 is less than the data's 9\n");
  expect({"data={kind: random, batch: 8}"}, "\n  write random: samples of this set's own");
  expect({"data={kind: tokens, batch: 8}", "evaluate.sets=[]"}, "data.train: no training data is named");
  expect({"model={kind: vit}"}, "data.kind: a vision transformer reads images");
}

}  // namespace quell
