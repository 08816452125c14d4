#include "train/run.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/signals.h"
#include "base/text.h"
#include "checkpoint/weights.h"
#include "tensors/fill.h"
#include "train/memory.h"

namespace quell {
namespace {

ArenaOptions arena_options(const RunConfig& config, const World& world) {
  return {.precision = config.precision, .world = world.size(), .device = at::kCPU};
}

void append(HostBatch& all, const HostBatch& more) {
  const auto add = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  all.samples += more.samples;
  all.context = more.context;
  all.channels = more.channels;
  all.height = more.height;
  all.width = more.width;
  add(all.inputs, more.inputs);
  add(all.targets, more.targets);
  add(all.documents, more.documents);
  add(all.positions, more.positions);
  add(all.answers, more.answers);
  add(all.images, more.images);
}

// A run's folder stands for the weights in it.
std::string weights_file(const std::string& from) {
  const bool is_file = from.size() > 12 && from.ends_with(".safetensors");
  return is_file ? from : from + "/weights.safetensors";
}

// A model that sees images of another size than before has as many more or fewer positions; nothing else may differ.
at::Tensor refit(const std::string& name, const at::Tensor& saved, const std::vector<int64_t>& shape) {
  if (name != "position.weight" || saved.numel() == 0 || saved.dim() != 2 || shape.size() != 2 || saved.size(1) != shape[1]) return {};
  return resample_positions(saved, shape[0]);
}

}  // namespace

int64_t planned_steps(const RunConfig& config, int64_t epoch_samples) {
  const auto batch = static_cast<double>(batch_of(config.data));
  double steps = INFINITY;
  if (config.steps) steps = static_cast<double>(*config.steps);
  if (config.tokens) {
    const auto context = static_cast<double>(std::get<DecoderConfig>(config.model).context);
    steps = std::min(steps, std::ceil(static_cast<double>(*config.tokens) / (batch * context)));
  }
  if (config.epochs) steps = std::min(steps, std::ceil(*config.epochs * static_cast<double>(epoch_samples) / batch));
  // 2^53: as many as a double counts.
  return std::isinf(steps) ? 0 : std::max<int64_t>(1, static_cast<int64_t>(std::min(steps, 0x1p53)));
}

Run::Run(RunConfig resolved, const RunOptions& options)
    : since_start(options.since_start),
      config(std::move(resolved)),
      world(options.world),
      source(open_source(config, options.progress)),
      evaluations(open_evaluations(config, labels_of(source), options.progress)),
      model(declare_model(parameters, config.model, config.optimizer)),  // frozen before memory is laid out
      arena(parameters, arena_options(config, world)),
      optimizer(parameters, arena, config.optimizer),
      reducer(world, arena.gradients(), buckets_of(arena, parameters)),
      objective(model, config.loss),
      finite(config.stability),
      batch(batch_of(config.data)),
      overfit(options.overfit) {
  steps = planned_steps(config, overfit > 0 ? overfit : epoch_samples(source));
  if (steps > 0) config.steps = steps;
  const int64_t parts = world.size() * config.micro_batches;
  if (batch % parts != 0) {
    const int64_t below = batch / parts * parts;
    throw UsageError(cat("data.batch: ", batch, " is no multiple of world x micro_batches = ", world.size(), " x ", config.micro_batches, " = ", parts,
                         below > 0 ? cat("; the nearest are ", below, " and ", below + parts) : cat("; the least is ", parts, ", or start fewer ranks")));
  }
  micro_batch = batch / parts;
  fill(parameters, arena, static_cast<uint64_t>(config.seed));
  const auto& from = transformer(config.model).init.from;
  if (from && !options.resumes) load_weights(weights_file(*from), parameters, arena, std::holds_alternative<Vit>(model) ? Refit(refit) : Refit());
  if (config.ema) ema.emplace(arena, *config.ema);
}

const char* Run::items() const { return std::holds_alternative<Vit>(model) ? "images" : "tokens"; }
int64_t Run::items_per_step() const {
  const auto* decoder = std::get_if<Decoder>(&model);
  return batch * (decoder != nullptr ? decoder->config().context : 1);
}

HostBatch Run::read(int64_t of_step, int64_t part) const {
  const int64_t first = of_step * batch + (world.rank() * config.micro_batches + part) * micro_batch;
  if (overfit == 0) return quell::read(source, first, micro_batch);
  HostBatch all;
  for (int64_t i = 0; i < micro_batch; ++i) append(all, quell::read(source, (first + i) % overfit, 1));
  return all;
}

void Run::begin_prefetch(int64_t first_step) {
  const int64_t parts = config.micro_batches;
  const auto* images = std::get_if<ImageData>(&config.data);
  const int threads = images != nullptr ? static_cast<int>(images->decode_threads) : 1;
  prefetch_ = std::make_unique<Prefetch>([this, parts](int64_t i) { return read(i / parts, i % parts); }, first_step * parts,
                                         static_cast<int>(2 * parts) + threads - 1, threads);
}

std::vector<Batch> Run::batches(int64_t of_step) {
  if (!prefetch_) return reread(of_step);
  std::vector<Batch> parts;
  signals::set_place("data wait", of_step);
  for (int64_t part = 0; part < config.micro_batches; ++part) parts.push_back(to_tensors(prefetch_->take()));
  signals::set_place("step", of_step);
  return parts;
}

std::vector<Batch> Run::reread(int64_t of_step) const {
  std::vector<Batch> parts;
  for (int64_t part = 0; part < config.micro_batches; ++part) parts.push_back(to_tensors(read(of_step, part)));
  return parts;
}

Forward Run::forward(const Batch& from, bool training) const { return forward_of(config, from, training); }

}  // namespace quell
