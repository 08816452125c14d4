#include "train/start.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"
#include "nn/count.h"
#include "tensors/memory.h"
#include "tensors/switches.h"

namespace quell {
namespace {

std::string group_text(const ParameterGroup& group) {
  std::string text = cat(name_of(group.role), " ", human_count(static_cast<double>(group.numel)), " (decay ", group.decay);
  if (group.lr_factor != 1) text += cat(", lr x ", group.lr_factor);
  if (group.clamp) text += cat(", clamp ", *group.clamp);
  return text + ")";
}

std::string qk_norm_text(const AttentionConfig& attention) {
  const QkNormOptions& o = attention.qk_norm;
  if (o.kind == NormKind::none) return "none";
  return cat(name_of(o.kind), " over the ", name_of(o.axis), ", weight ", name_of(o.weight), ", eps ", o.eps, ", ", name_of(o.rope),
             " rotary, scale ", name_of(attention.scale.kind));
}

// "flash in 5 layers, explicit scores in 1 (soft-cap)".
std::string attention_text(const Run& run) {
  const TransformerConfig& model = transformer(run.config.model);
  std::map<std::string, int> layers;
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string reason;
    const bool flash = attention_path(run.config, layer_variant(model, layer).attention, &reason) == ops::AttentionPath::flash;
    ++layers[flash ? "flash" : "explicit scores (" + reason + ")"];
  }
  std::vector<std::string> parts;
  for (const auto& [path, count] : layers) parts.push_back(cat(path, " in ", count, count == 1 ? " layer" : " layers"));
  return join(parts, ", ");
}

// What enters and what leaves the model.
std::string ends_text(const DecoderConfig& model) { return cat("vocabulary ", *model.vocabulary); }
std::string ends_text(const VitConfig& model) {
  return cat(model.image, " x ", model.image, " x ", model.channels, " in patches of ", model.patch, ", ", *model.classes, " classes");
}
std::string ends_text(const ModelConfig& model) {
  return std::visit([](const auto& m) { return ends_text(m); }, model);
}

std::string data_text(const Run& run) {
  if (train_path(run.config.data) == nullptr) return "drawn, not read: " + kind_of(run.config.data);
  const DataFacts data = facts_of(run.source);
  return cat(human_count(static_cast<double>(data.count)), " ", data.items, ", an epoch is ",
             human_count(static_cast<double>(epoch_samples(run.source)) / static_cast<double>(run.batch)), " steps");
}

std::string step_text(const Run& run) {
  if (run.batch == run.items_per_step()) return cat(run.batch, " ", run.items());
  return cat(run.batch, " x ", run.items_per_step() / run.batch, " = ", run.items_per_step(), " ", run.items());
}

}  // namespace

void refuse_cuda(const std::string& device, const ops::CudaDevices& visible) {
  const size_t index = std::stoul(device.substr(device.find(':') + 1));
  if (index >= visible.devices.size()) {
    throw MachineError(cat("device: ", device, " is not there: ", ops::cuda_description(visible), "; set device to auto or cpu"));
  }
  throw UsageError(cat("device: ", device, " (", visible.devices[index].name,
                       ") is there, but training on it is not finished in this version; set device to auto or cpu"));
}

int prepare_process(const RunConfig& config, int cores) {
  // Looking for devices loads the driver, which a run on the CPU is spared.
  if (config.device.starts_with("cuda:")) refuse_cuda(config.device, ops::visible_cuda_devices());
  const int threads = config.threads ? static_cast<int>(*config.threads) : cores > 0 ? cores : machine::cores();
  keep_step_memory();
  set_switches({.threads = threads});
  return threads;
}

double probe_matrix_products() {
  at::NoGradGuard no_gradients;
  const int64_t n = 512;
  const at::Tensor a = at::ones({n, n}), b = at::ones({n, n});
  at::Tensor c = at::mm(a, b);
  const Timer whole;
  double best = INFINITY;  // of single products: what else the machine does is no part of its peak
  while (whole.seconds() < 0.05) {
    const Timer timer;
    at::mm_out(c, a, b);
    best = std::min(best, timer.seconds());
  }
  return 2.0 * static_cast<double>(n * n * n) / best;
}

std::vector<std::string> start_block(const Run& run, int threads, double peak_flops) {
  const TransformerConfig& model = transformer(run.config.model);
  std::vector<std::string> groups;
  for (const ParameterGroup& group : run.optimizer.groups()) groups.push_back(group_text(group));
  const double step_flops = flops_per_sample(run.config.model) * static_cast<double>(run.batch);
  std::vector<std::string> lines{
      cat("device      cpu, ", threads, threads == 1 ? " thread" : " threads", ", ", human_count(peak_flops), "FLOP/s in a probe"),
      "libtorch    " + libtorch_description(),
      cat("model       ", human_count(static_cast<double>(run.parameters.numel())), " parameters, ", model.layers, " layers, width ",
          model.width, ", ", model.heads, "/", model.kv(), " heads of ", model.head(), ", ", ends_text(run.config.model)),
      "qk-norm     " + qk_norm_text(model.attention),
      "attention   " + attention_text(run),
      "groups      " + join(groups, "\n            "),
      cat("step        ", step_text(run), ", ", human_count(step_flops), "FLOP"),
      "data        " + data_text(run)};
  if (run.steps > 0) {
    const double at_best = step_flops / peak_flops * static_cast<double>(run.steps);
    lines.push_back(cat("plan        ", run.steps, " steps, not under ", human_seconds(at_best), " at the probe's rate"));
  }
  return lines;
}

}  // namespace quell
