#include "train/run.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "checkpoint/weights.h"
#include "tensors/fill.h"

namespace quell {
namespace {

const TokenData& token_data(const RunConfig& config) { return std::get<TokenData>(config.data); }
DecoderConfig& decoder(RunConfig& config) { return std::get<DecoderConfig>(config.model); }

TokenSource open_source(RunConfig& config, const Progress& progress) {
  const TokenData& data = token_data(config);
  DecoderConfig& model = decoder(config);
  TokenSet set = TokenSet::open(data.train, data.type, model.vocabulary.value_or(0), progress);
  if (!model.vocabulary) model.vocabulary = set.vocabulary_size();
  return TokenSource(std::move(set), model.context, static_cast<uint64_t>(config.seed), data.cross_documents);
}

// Ids that mean other characters would be scored without a sign of it.
void require_same_vocabulary(const TokenSet& training, const TokenSet& evaluated) {
  const Vocabulary *ours = training.vocabulary(), *theirs = evaluated.vocabulary();
  if (ours == nullptr || theirs == nullptr || ours->to_json() == theirs->to_json()) return;
  throw DataError(cat(evaluated.path(), ": its vocabulary is not that of ", training.path(),
                      "; prepare both with one call of `quell data prepare`"));
}

std::vector<EvaluationData> open_evaluations(RunConfig& config, const TokenSet& training, const Progress& progress) {
  const TokenData& data = token_data(config);
  const DecoderConfig& model = decoder(config);
  const int64_t windows = config.evaluate.batches ? *config.evaluate.batches * data.batch : 0;
  std::vector<EvaluationData> sets;
  for (const EvaluationSet& set : config.evaluate.sets) {
    TokenSet tokens = TokenSet::open(set.data, data.type, *model.vocabulary, progress);
    require_same_vocabulary(training, tokens);
    sets.push_back({set.name, FixedTokens(std::move(tokens), model.context, windows, data.cross_documents)});
  }
  return sets;
}

// The smallest of steps, tokens and epochs; 0 where none is given.
int64_t planned_steps(const RunConfig& config, int64_t epoch_samples) {
  const auto batch = static_cast<double>(token_data(config).batch);
  const auto context = static_cast<double>(std::get<DecoderConfig>(config.model).context);
  double steps = INFINITY;
  if (config.steps) steps = static_cast<double>(*config.steps);
  if (config.tokens) steps = std::min(steps, std::ceil(static_cast<double>(*config.tokens) / (batch * context)));
  if (config.epochs) steps = std::min(steps, std::ceil(*config.epochs * static_cast<double>(epoch_samples) / batch));
  return std::isinf(steps) ? 0 : std::max<int64_t>(1, static_cast<int64_t>(steps));
}

// Freezing must be settled before memory is laid out.
Decoder build_model(ParameterList& parameters, const RunConfig& config) {
  Decoder model(parameters, std::get<DecoderConfig>(config.model));
  const std::vector<std::string> unmatched = parameters.freeze(config.optimizer.freeze);
  if (!unmatched.empty()) {
    throw UsageError("optimizer.freeze: no parameter matches " + join(unmatched, ", ") + " (names are like blocks.0.mlp.up.weight)");
  }
  return model;
}

ArenaOptions arena_options(const RunConfig& config, const World& world) {
  return {.precision = config.precision, .world = world.size(), .device = at::kCPU};
}

void append(HostBatch& all, const HostBatch& more) {
  const auto add = [](std::vector<int64_t>& to, const std::vector<int64_t>& from) { to.insert(to.end(), from.begin(), from.end()); };
  all.samples += more.samples;
  all.context = more.context;
  add(all.inputs, more.inputs);
  add(all.targets, more.targets);
  add(all.documents, more.documents);
  add(all.positions, more.positions);
}

// A run's folder stands for the weights in it.
std::string weights_file(const std::string& from) {
  const bool is_file = from.size() > 12 && from.ends_with(".safetensors");
  return is_file ? from : from + "/weights.safetensors";
}

}  // namespace

int64_t vocabulary_of(RunConfig config) {
  if (!decoder(config).vocabulary) open_source(config, {});
  return *decoder(config).vocabulary;
}

Run::Run(RunConfig resolved, const RunOptions& options)
    : config(std::move(resolved)),
      source(open_source(config, options.progress)),
      evaluations(open_evaluations(config, source.tokens(), options.progress)),
      model(build_model(parameters, config)),
      arena(parameters, arena_options(config, world)),
      optimizer(parameters, arena, config.optimizer),
      reducer(world, arena.gradients(), buckets_of(arena)),
      objective(model, config.loss),
      finite(config.stability),
      batch(token_data(config).batch),
      overfit(options.overfit) {
  steps = planned_steps(config, overfit > 0 ? overfit : source.epoch_samples());
  if (steps > 0) config.steps = steps;
  const int64_t parts = world.size() * config.micro_batches;
  if (batch % parts != 0) {
    throw UsageError(cat("data.batch: ", batch, " is no multiple of world x micro_batches = ", parts));
  }
  micro_batch = batch / parts;
  fill(parameters, arena, static_cast<uint64_t>(config.seed));
  const auto& from = std::get<DecoderConfig>(config.model).init.from;
  if (from) load_weights(weights_file(*from), parameters, arena);
}

int64_t Run::tokens_per_step() const { return batch * std::get<DecoderConfig>(config.model).context; }

HostBatch Run::read(int64_t step, int64_t part) const {
  const int64_t first = step * batch + (world.rank() * config.micro_batches + part) * micro_batch;
  if (overfit == 0) return source.read(first, micro_batch);
  HostBatch all;
  for (int64_t i = 0; i < micro_batch; ++i) append(all, source.read((first + i) % overfit, 1));
  return all;
}

void Run::begin_prefetch(int64_t first_step) {
  const int64_t parts = config.micro_batches;
  prefetch_ = std::make_unique<Prefetch>([this, parts](int64_t i) { return read(i / parts, i % parts); }, first_step * parts,
                                         static_cast<int>(2 * parts));
}

std::vector<Batch> Run::batches(int64_t step) {
  if (!prefetch_) return reread(step);
  std::vector<Batch> parts;
  for (int64_t part = 0; part < config.micro_batches; ++part) parts.push_back(to_tensors(prefetch_->take()));
  return parts;
}

std::vector<Batch> Run::reread(int64_t step) const {
  std::vector<Batch> parts;
  for (int64_t part = 0; part < config.micro_batches; ++part) parts.push_back(to_tensors(read(step, part)));
  return parts;
}

Forward Run::forward(const Batch& from, bool training) const {
  Forward forward;
  forward.training = training;
  forward.dropout_key = key_of(static_cast<uint64_t>(config.seed), "dropout");
  forward.samples_B = from.samples_B;
  forward.documents_BT = from.documents_BT;
  forward.kernels = config.precision == Precision::fp64 ? Kernels::reference : config.kernels;
  return forward;
}

}  // namespace quell
