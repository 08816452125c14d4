// The whole run file: the sections of all rooms, and the checks between them.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "config/describe.h"
#include "data/sources.h"
#include "dist/config.h"
#include "nn/config.h"
#include "ops/attention.h"
#include "optim/config.h"
#include "stability/finite.h"
#include "stability/health.h"
#include "tensors/arena.h"

namespace quell {

template <>
inline constexpr auto choices<Precision> = std::array{
    Choice{Precision::fp32, "fp32"}, Choice{Precision::bf16, "bf16", "bf16 products, fp32 masters, moments and gradients"},
    Choice{Precision::fp64, "fp64", "everything double, by the readable twins; for proofs"}};

struct EvaluationSet {
  std::string name;
  std::string data;
};
template <class V>
void describe(V& v, EvaluationSet& c) {
  v.field("name", c.name, help("Prefix of its metrics: valid gives valid.loss."));
  v.field("data", c.data, help("Data of the training data's kind and type: see data.train; or the word copy or random, where these are drawn."));
}

struct EvaluateConfig {
  std::vector<EvaluationSet> sets;
  int64_t every = 300;
  Optional<int64_t> batches = 40;
  int64_t sample = 0;
  std::string prompt;
};
template <class V>
void describe(V& v, EvaluateConfig& c) {
  v.field("sets", c.sets, help("Fixed sets that are evaluated before the first step, between, and after the last."));
  v.field("every", c.every, help("Steps between evaluations; 0: only before and after.").unit("steps").at_least(0));
  v.field("batches", c.batches, help("Batches of data.batch samples, evenly spaced over a set; all: the whole set.")
              .absent("all").at_least(1));
  v.field("sample", c.sample, help("Tokens of text that are generated and shown at each evaluation; 0: none.").unit("tokens").at_least(0));
  v.field("prompt", c.prompt, help("What the shown text begins with."));
}

struct LossConfig {
  LossKind kind = LossKind::softmax;
  double z = 0;
  double max_z = 0;
  double label_smoothing = 0;
};
template <class V>
void describe(V& v, LossConfig& c) {
  v.field("kind", c.kind, help("What is minimised over the output logits."));
  v.field("z", c.z, help("z-loss: z x (log of the softmax's denominator)^2, summed over targets.").at_least(0).at_most(1e9));
  v.field("max_z", c.max_z, help("max-z loss: max_z x (largest logit)^2.").at_least(0).at_most(1e9));
  v.field("label_smoothing", c.label_smoothing, help("Probability spread evenly over the vocabulary or classes.").at_least(0).below(1));
}

void check(Problems& problems, const LossConfig& config);

struct ReportConfig {
  int64_t every = 10;
};
template <class V>
void describe(V& v, ReportConfig& c) {
  v.field("every", c.every, help("Steps between rows of metrics.jsonl and lines of the console.").unit("steps").at_least(1));
}

struct RunConfig {
  std::string name;
  int64_t seed = 1;
  Optional<int64_t> steps;
  Optional<int64_t> tokens;
  Optional<double> epochs;
  Optional<double> time;
  int64_t micro_batches = 1;
  Precision precision = Precision::fp32;
  std::string device = "auto";
  Optional<int64_t> threads;
  Kernels kernels = Kernels::automatic;
  ModelConfig model;
  DataConfig data;
  EvaluateConfig evaluate;
  LossConfig loss;
  OptimizerConfig optimizer;
  HealthConfig health;
  StabilityConfig stability;
  CheckpointConfig checkpoint;
  ParallelConfig parallel;
  std::string resume = "never";
  Optional<int64_t> stop_code;
  ReportConfig report;
  Optional<double> ema;
};

// What an attention preset says of the QK-norm weights' decay becomes the default of optimizer.groups.
void apply_preset_groups(RunConfig& config);

template <class V>
void describe(V& v, RunConfig& c) {
  v.field("name", c.name, help("The run's folder is runs/<name> unless --run says otherwise."));
  v.field("seed", c.seed, help("Initial values, data order and dropout follow from it.").at_least(0));
  v.field("steps", c.steps, help("Optimiser steps; with tokens and epochs the smallest counts.").unit("steps").suffixes().at_least(1));
  v.field("tokens", c.tokens, help("Training tokens.").unit("tokens").suffixes().at_least(1));
  v.field("epochs", c.epochs, help("Passes over the training data.").above(0));
  v.field("time", c.time, help("Stops the run after this time, whatever the plan.").duration().above(0));
  v.field("micro_batches", c.micro_batches, help("Parts in which each rank computes its share of a step.").at_least(1));
  v.field("precision", c.precision, help("What forward and backward compute in."));
  v.field("device", c.device, help("auto, cpu or cuda:N."));
  v.field("threads", c.threads, help("CPU threads; auto: the cores this process may use.").absent("auto").at_least(1).at_most(1024));
  v.field("kernels", c.kernels, help("Which implementations run."));
  v.field("model", c.model, help("The network."));
  v.derive([&c] { apply_preset_groups(c); });
  v.field("data", c.data, help("What is trained on."));
  v.field("evaluate", c.evaluate, help("What is evaluated, and when."));
  v.field("loss", c.loss, help("Auxiliary terms on the output logits."));
  v.field("optimizer", c.optimizer, help("The update rule."));
  v.field("health", c.health, help("How often attention is measured."));
  v.field("stability", c.stability, help("What happens when numbers go wrong."));
  v.field("checkpoint", c.checkpoint, help("When the run is saved, and what is kept."));
  v.field("parallel", c.parallel, help("What several ranks do; how many there are is not written here."));
  v.field("resume", c.resume, help("never: the run's folder must be new; must: it must hold a checkpoint to go on from; auto: go on "
                                   "where there is one, else begin; or the path of a checkpoint or a run, from which a new folder begins."));
  v.field("stop_code", c.stop_code, help("Exit code of a run that was stopped on request with a checkpoint saved; auto: 75, under torchrun 0.")
              .absent("auto").at_least(0).at_most(255));
  v.field("report", c.report, help("How often numbers are reported."));
  v.field("ema", c.ema, help("Decay of a moving average of the weights, evaluated as <set>.ema and saved as ema.safetensors.").at_least(0).below(1));
}
void check(Problems& problems, const RunConfig& config);

// Which implementation of attention such a layer takes in training, and why not the fused one.
ops::AttentionPath attention_path(const RunConfig& config, const AttentionConfig& attention, std::string* reason = nullptr);

}  // namespace quell
