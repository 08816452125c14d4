#include "train/memory.h"

#include <algorithm>

#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"
#include "nn/tape.h"
#include "ops/tape.h"

namespace quell {
namespace {

ModelConfig with_outputs(ModelConfig model, int64_t outputs) {
  if (auto* vit = std::get_if<VitConfig>(&model)) vit->classes = outputs;
  else std::get<DecoderConfig>(model).vocabulary = outputs;
  return model;
}

// The program and LibTorch's libraries as far as they are touched (77 MiB of files), what their start leaves on the heap (60), and
// the buffer in which MKL packs factors of large products (29). Measured with LibTorch 2.11 on two threads by /proc/PID/smaps during a
// dry run of GPT-2, whose own blocks are mappings of known sizes; it varies little with the model, for the smallest without MKL's part.
constexpr double process_bytes = 166.0 * (1 << 20);

double scalar_of(Precision precision) { return precision == Precision::fp64 ? 8 : 4; }
double storage_of(Precision precision) { return precision == Precision::bf16 ? 2 : scalar_of(precision); }

ops::TapeOptions tape_options(const RunConfig& config) {
  return {.storage = storage_of(config.precision),
          .exact = scalar_of(config.precision),
          .twins = config.precision == Precision::fp64 || config.kernels == Kernels::reference,
          .threads = static_cast<double>(config.threads.value_or(machine::cores()))};
}

TapedModel taped(const RunConfig& config, const PlannedParameters& parameters) {
  TapedModel model;
  model.explicit_scores = [&config](const AttentionConfig& attention) {
    return attention_path(config, attention) == ops::AttentionPath::explicit_scores;
  };
  model.first_trained_unit = INT64_MAX;
  for (const Parameter& parameter : parameters.list) {
    if (!parameter.frozen) model.first_trained_unit = std::min(model.first_trained_unit, parameter.unit);
    if (parameter.frozen && parameter.name == "output.weight") model.output_trained = false;
  }
  return model;
}

// Samples as they come from the data: a step holds all of its own, and those of two more are prefetched, with a micro-batch for each
// further decoding thread.
double batch_bytes(const RunConfig& config) {
  const auto samples = static_cast<double>(batch_of(config.data));
  const auto index = static_cast<double>(sizeof(int64_t));
  if (const auto* vit = std::get_if<VitConfig>(&config.model)) {
    const auto* images = std::get_if<ImageData>(&config.data);
    const auto threads = static_cast<double>(images != nullptr ? images->decode_threads : 1);
    const double held = 3 * samples + (threads - 1) * samples / static_cast<double>(config.micro_batches);
    return held * (static_cast<double>(vit->channels * vit->image * vit->image) * sizeof(float) + 2 * index);
  }
  const auto* tokens = std::get_if<TokenData>(&config.data);
  const bool documents = tokens != nullptr && !tokens->cross_documents;
  const auto context = static_cast<double>(std::get<DecoderConfig>(config.model).context);
  return 3 * samples * index * ((documents ? 3 : 2) * context + 1);
}

struct StepMemory {
  double fixed = 0, activations = 0, scores = 0, logits = 0, peak = 0;
};

// Two steps, since the second finds the blocks that the first left. Micro-batches follow each other in the same memory, so that of
// several two are enough as well.
StepMemory taped_step(const RunConfig& config, const PlannedParameters& parameters) {
  const bool images = std::holds_alternative<VitConfig>(parameters.model);
  const auto elements = static_cast<double>(parameters.layout.elements), trainable = static_cast<double>(parameters.layout.trainable);
  const double scalar = scalar_of(config.precision), samples = static_cast<double>(batch_of(config.data) / config.micro_batches);
  Ledger ledger;
  std::vector<Ledger::Memory> fixed{ledger.make(elements * scalar), ledger.make(trainable * scalar)};
  if (config.precision == Precision::bf16) fixed.push_back(ledger.make(elements * 2));
  for (int moment = 0; moment < 2; ++moment) fixed.push_back(ledger.make(trainable * scalar));

  StepMemory memory{.fixed = static_cast<double>(ledger.in_use())};
  const TapedModel model = taped(config, parameters);
  for (int step = 0; step < 2; ++step) {
    ops::Tape tape(ledger, tape_options(config));
    ops::Sized logits = logits_on(tape, parameters.model, samples, model);
    memory.logits = logits.bytes();
    memory.activations = static_cast<double>(ledger.in_use()) - memory.fixed - memory.logits;
    memory.scores = tape.saved_scores();
    const double rows = images ? samples : samples * static_cast<double>(std::get<DecoderConfig>(parameters.model).context);
    const auto* decoder = std::get_if<DecoderConfig>(&parameters.model);
    const ops::Sized loss = ops::output_loss(tape, logits, rows, config.loss.kind == LossKind::sigmoid,
                                             decoder != nullptr && decoder->output.softcap.has_value());
    logits = {};
    if (loss.node >= 0) tape.backward(loss);
  }
  memory.peak = static_cast<double>(ledger.peak_resident());
  return memory;
}

}  // namespace

Model declare_model(ParameterList& parameters, const ModelConfig& config, const OptimizerConfig& optimizer) {
  Model model = make_model(parameters, config);
  const std::vector<std::string> unmatched = parameters.freeze(optimizer.freeze);
  if (!unmatched.empty()) {
    throw UsageError("optimizer.freeze: no parameter matches " + join(unmatched, ", ") + " (names are like blocks.0.mlp.up.weight)");
  }
  if (std::all_of(parameters.begin(), parameters.end(), [](const Parameter& parameter) { return parameter.frozen; })) {
    throw UsageError("optimizer.freeze: every parameter is frozen, so there is nothing to train");
  }
  return model;
}

PlannedParameters::PlannedParameters(const RunConfig& config, int64_t outputs) : model(with_outputs(config.model, outputs)) {
  declare_model(list, model, config.optimizer);
  layout = layout_of(list, config.precision, 1);
}

std::vector<MemoryClass> memory_classes(const RunConfig& config, int64_t outputs) {
  const PlannedParameters parameters(config, outputs);
  const StepMemory step = taped_step(config, parameters);
  const auto elements = static_cast<double>(parameters.layout.elements), trainable = static_cast<double>(parameters.layout.trainable);
  const double scalar = scalar_of(config.precision);
  std::vector<MemoryClass> classes{
      {"weights", elements * scalar, "a smaller model.width or model.layers"},
      {"bf16 copies", config.precision == Precision::bf16 ? elements * 2 : 0, "a smaller model.width or model.layers"},
      {"gradients", trainable * scalar, "optimizer.freeze"},
      {"optimizer moments", 2 * trainable * scalar, "optimizer.freeze, or a smaller model"},
      // An evaluation of it holds the weights apart for that time.
      {"moving average", config.ema ? 2 * elements * scalar : 0, "ema: none"},
      {"saving", (elements * (config.ema ? 2 : 1) + 2 * trainable) * scalar, "optimizer.freeze, or a smaller model"},
      {"activations", step.activations - step.scores, "a larger micro_batches"},
      {"attention scores", step.scores, "attention without dropout of weights and soft-cap"},
      {"output logits", step.logits, "a larger micro_batches"},
      // Gradients of activations on their way, and free blocks that are kept for reuse.
      {"backward and kept", step.peak - step.fixed - step.activations - step.logits, "a larger micro_batches"},
      {"batches", batch_bytes(config), "a smaller data.batch"},
      {"program", process_bytes, ""}};
  std::stable_sort(classes.begin(), classes.end(), [](const MemoryClass& a, const MemoryClass& b) { return a.bytes > b.bytes; });
  return classes;
}

double total_of(const std::vector<MemoryClass>& classes) {
  double total = 0;
  for (const MemoryClass& c : classes) total += c.bytes;
  return total;
}

std::string out_of_memory_message(const RunConfig& config, int64_t outputs) {
  const std::vector<MemoryClass> classes = memory_classes(config, outputs);
  const auto largest = std::find_if(classes.begin(), classes.end(), [](const MemoryClass& c) { return !c.advice.empty(); });
  std::string text = cat("memory: the machine's ", human_bytes(static_cast<double>(machine::memory_limit())),
                         " are not enough; by formula the largest part is ", largest->name);
  for (const MemoryClass& c : classes) {
    if (c.bytes > 0) text += cat("\n  ", c.name, " ", human_bytes(c.bytes));
  }
  return text + "\n  what helps: a larger micro_batches (now " + std::to_string(config.micro_batches) +
         "), a smaller model.context or data.batch, or " + largest->advice;
}

}  // namespace quell
