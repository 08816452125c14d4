#include "tools/dump.h"

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/safetensors.h"

namespace quell {
namespace {

using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

// One sample alone: attention is [L, H, T, T].
Tensors look_at(const RunConfig& config, const Objective& objective, const EvaluationData& set, int64_t sample) {
  const Batch batch = to_tensors(read(set.data, sample, 1));
  Forward forward = forward_of(config, batch, false);
  std::vector<at::Tensor> layers;
  forward.attention = &layers;
  const at::Tensor logits_NV = objective.logits(forward, batch);
  const bool images = batch.images_BCHW.defined();
  Tensors seen{{"samples", at::scalar_tensor(sample, at::kLong)},
               {"targets", batch.targets_BT.squeeze(0)},
               {"predictions", logits_NV.argmax(1).view(batch.targets_BT.sizes()).squeeze(0)},
               {"attention", at::cat(layers, 0)}};
  if (images) {
    seen.emplace_back("images", batch.images_BCHW.squeeze(0));
    seen.emplace_back("logits", logits_NV.squeeze(0).to(at::kFloat));
  } else {
    seen.emplace_back("tokens", batch.inputs_BT.squeeze(0));
  }
  return seen;
}

}  // namespace

void require_samples(const EvaluationData& set, const std::vector<int64_t>& samples) {
  for (const int64_t sample : samples) {
    if (sample >= 0 && sample < samples_of(set.data)) continue;
    throw UsageError(cat("--samples: ", sample, " is not among the ", samples_of(set.data), " samples of ", set.name, ", counted from 0"));
  }
}

void dump_samples(const std::string& path, const RunConfig& config, const Objective& objective, const EvaluationData& set,
                  const std::vector<int64_t>& samples) {
  at::NoGradGuard no_gradients;
  std::vector<Tensors> all;
  for (const int64_t sample : samples) all.push_back(look_at(config, objective, set, sample));
  Tensors stacked;
  for (size_t i = 0; !all.empty() && i < all[0].size(); ++i) {
    std::vector<at::Tensor> parts;
    for (const Tensors& seen : all) parts.push_back(seen[i].second);
    stacked.emplace_back(all[0][i].first, at::stack(parts));
  }
  write_safetensors(path, stacked, {{"format", "quell samples 1"}, {"set", set.name}});
}

void Predictions::add(const Batch& batch, const at::Tensor& logits_NV) {
  targets_.push_back(batch.targets_BT.reshape(-1));
  predictions_.push_back(at::where(targets_.back() >= 0, logits_NV.argmax(1), -1));
}

void Predictions::write(const std::string& path) const {
  write_safetensors(path, {{"predictions", at::cat(predictions_)}, {"targets", at::cat(targets_)}}, {{"format", "quell predictions 1"}});
}

}  // namespace quell
