#include "tools/plan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "data/sidecar.h"
#include "data/windows.h"
#include "nn/count.h"
#include "tensors/switches.h"
#include "train/run.h"
#include "train/start.h"

namespace quell {
namespace {

int64_t stated_outputs(const RunConfig& config) {
  const auto* vit = std::get_if<VitConfig>(&config.model);
  Optional<int64_t> outputs = vit != nullptr ? vit->classes : std::get<DecoderConfig>(config.model).vocabulary;
  const char* key = vit != nullptr ? "model.classes" : "model.vocabulary";
  if (const auto* copy = std::get_if<CopyData>(&config.data); copy && !outputs) outputs = copy->vocabulary();
  if (const auto* random = std::get_if<RandomData>(&config.data); random && !outputs) outputs = random->vocabulary;
  if (!outputs) {
    throw UsageError(cat(key, ": left to the data, which a plan does not open; state it in the run file or add ", key, "=N"));
  }
  return *outputs;
}

// "blocks.3.attention.q.weight" belongs to attention, "blocks.3.mlp_norm.weight" and "norm.bias" to norms.
std::string part_of(const std::string& name) {
  const size_t begin = name.starts_with("blocks.") ? name.find('.', 7) + 1 : 0;
  const std::string part = name.substr(begin, name.find('.', begin) - begin);
  if (part.ends_with("norm")) return "norms";
  return part.ends_with("_scale") ? "layer scale" : part;
}

void count_parts(Plan& plan, const ParameterList& parameters) {
  for (const Parameter& parameter : parameters) {
    plan.parameters += parameter.numel();
    if (!parameter.frozen) plan.trained += parameter.numel();
    const std::string part = part_of(parameter.name);
    auto found = std::find_if(plan.parts.begin(), plan.parts.end(), [&](const auto& p) { return p.first == part; });
    if (found == plan.parts.end()) found = plan.parts.insert(plan.parts.end(), {part, 0});
    found->second += parameter.numel();
  }
}

// Tokens of the training data by what says so cheaply: a side-car, or the size of a raw file of a stated type.
std::optional<int64_t> cheap_tokens(const TokenData& data) {
  try {
    if (files::exists(data.train + "/" + SideCar::file_name)) return read_side_car(data.train).tokens();
    if (data.type == TokenType::automatic || !files::exists(data.train) || files::is_folder(data.train)) return std::nullopt;
    return static_cast<int64_t>(files::size(data.train)) / (data.type == TokenType::uint16 ? 2 : 4);
  } catch (const Error&) {
    return std::nullopt;  // `quell train` will say what is wrong with the data
  }
}

std::optional<int64_t> cheap_epoch(const RunConfig& config) {
  const auto* data = std::get_if<TokenData>(&config.data);
  if (data == nullptr) return std::nullopt;
  const int64_t context = std::get<DecoderConfig>(config.model).context;
  const std::optional<int64_t> tokens = cheap_tokens(*data);
  if (!tokens || *tokens <= context) return std::nullopt;
  return Windows(*tokens, context, 0).count();
}

void count_run(Plan& plan, const RunConfig& config) {
  plan.batch = batch_of(config.data);
  plan.items_per_step = plan.batch;
  if (const auto* decoder = std::get_if<DecoderConfig>(&config.model)) plan.items_per_step *= decoder->context;
  plan.epoch_samples = cheap_epoch(config);
  RunConfig known = config;
  if (!plan.epoch_samples) known.epochs.reset();
  plan.steps = planned_steps(known, plan.epoch_samples.value_or(0));
}

void count_time(Plan& plan, const RunConfig& config, const std::string& speed) {
  plan.probed = speed.empty();
  if (plan.probed) {
    set_switches({.threads = config.threads ? static_cast<int>(*config.threads) : machine::cores()});
    plan.speed = probe_matrix_products();
  } else {
    plan.speed = parse_count(speed, "--speed");
  }
  plan.seconds = plan.flops_per_step / static_cast<double>(plan.world) * static_cast<double>(plan.steps) / plan.speed;
}

// What one rank computes, as a run of its own.
RunConfig share_of(const RunConfig& config, int64_t world) {
  RunConfig share = config;
  const int64_t parts = world * config.micro_batches;
  if (batch_of(config.data) % parts != 0) {
    throw UsageError(cat("--world ", world, ": data.batch ", batch_of(config.data), " is no multiple of world x micro_batches = ", parts));
  }
  batch_of(share.data) /= world;
  return share;
}

void count_traffic(Plan& plan, const RunConfig& config, const std::string& bandwidth) {
  const double gradients = (config.precision == Precision::fp64 ? 8.0 : 4.0) * static_cast<double>(plan.trained);
  const auto ranks = static_cast<double>(plan.world);
  plan.sent_per_step = 2 * (ranks - 1) / ranks * gradients;
  if (bandwidth.empty()) return;
  plan.bandwidth = parse_bytes(bandwidth, "--bandwidth");
  plan.send_seconds = plan.sent_per_step / plan.bandwidth;
}

struct Unit {
  const char* name;
  double factor;
};

// A positive number and one of the units; "" stands for none.
template <size_t N>
double quantity(const std::string& text, const std::string& option, const std::array<Unit, N>& units, const char* allowed) {
  size_t end = 0;
  double value = 0;
  try {
    value = std::stod(text, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const size_t begin = text.find_first_not_of(' ', end);
  const std::string unit = begin == std::string::npos ? "" : text.substr(begin);
  for (const Unit& known : units) {
    if (end > 0 && unit == known.name && std::isfinite(value) && value > 0) return value * known.factor;
  }
  throw UsageError(cat(option, ": \"", text, "\" is not ", allowed));
}

}  // namespace

double parse_bytes(const std::string& text, const std::string& option) {
  static constexpr std::array<Unit, 13> units{{{"", 1}, {"B", 1}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"KiB", 0x1p10},
                                               {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}}};
  return quantity(text, option, units, "a size of memory, like 24GB, 22.5GiB or 800MB");
}

double parse_count(const std::string& text, const std::string& option) {
  static constexpr std::array<Unit, 6> units{{{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}}};
  return quantity(text, option, units, "a positive number, like 300G, 10T or 3.5e12");
}

Plan make_plan(const RunConfig& given, const PlanOptions& options) {
  const int64_t outputs = stated_outputs(given);
  const RunConfig share = share_of(given, options.world);
  Plan plan;
  plan.world = options.world;
  plan.limit_text = options.memory;
  plan.limit = options.memory.empty() ? static_cast<double>(machine::memory_limit()) : parse_bytes(options.memory, "--memory");
  const PlannedParameters parameters(given, outputs);
  count_parts(plan, parameters.list);
  count_run(plan, given);
  const double per_sample = flops_per_sample(parameters.model);
  plan.item = std::holds_alternative<VitConfig>(given.model) ? "image" : "token";
  plan.flops_per_step = per_sample * static_cast<double>(plan.batch);
  plan.flops_per_item = plan.flops_per_step / static_cast<double>(plan.items_per_step);
  count_time(plan, given, options.speed);
  count_traffic(plan, given, options.bandwidth);
  plan.memory = memory_classes(share, outputs);
  if (plan.over() > 0 && plan.world == 1) plan.changes = fitting_changes(given, outputs, plan.limit);
  const double scalar = given.precision == Precision::fp64 ? 8 : 4;  // the masters' type
  plan.weights_on_disk = scalar * static_cast<double>(plan.parameters);
  plan.moments_on_disk = 2 * scalar * static_cast<double>(plan.trained);
  return plan;
}

}  // namespace quell
