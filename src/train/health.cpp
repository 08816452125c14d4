#include "train/health.h"

#include <algorithm>

namespace quell {
namespace {

// Together with the report's rows: after every `every`-th step.
bool due(int64_t step, int64_t every) { return every > 0 && (step + 1) % every == 0; }

}  // namespace

HealthSums health_wanted(const Run& run, int64_t step) {
  const HealthConfig& config = run.config.health;
  const bool edge = step == 0 || step + 1 == run.steps;
  HealthSums sums;
  sums.entropy = config.entropy_every > 0 && (edge || due(step, config.entropy_every));
  sums.bounds = sums.entropy || (config.every > 0 && (edge || due(step, config.every)));
  return sums;
}

HealthReport report_of(const HealthSums& sums, const World& world) {
  HealthVectors vectors = pack(sums);
  world.max(vectors.maxima);
  world.sum(vectors.sums);
  return unpack(sums, vectors);
}

std::vector<LayerWeights> layer_weights(const Run& run) {
  const TransformerConfig& config = transformer(run.config.model);
  std::vector<LayerWeights> layers(static_cast<size_t>(config.layers));
  for (const Parameter& parameter : run.parameters) {
    const int64_t layer = parameter.unit - 1;  // that of attention pooling lies behind the last
    if (parameter.role != Role::qk_norm_weight || layer < 0 || layer >= config.layers) continue;
    LayerWeights& weights = layers[static_cast<size_t>(layer)];
    const double shift = layer_variant(config, layer).attention.qk_norm.zero_centered ? 1 : 0;
    const double low = parameter.value.min().item<double>() + shift, high = parameter.value.max().item<double>() + shift;
    weights.norm_min = weights.has_norm ? std::min(weights.norm_min, low) : low;
    weights.norm_max = weights.has_norm ? std::max(weights.norm_max, high) : high;
    weights.has_norm = true;
  }
  at::NoGradGuard no_gradients;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    const at::Tensor factor = blocks_of(run.model)[layer].attention().learned_factor();
    if (!factor.defined()) continue;
    const at::Tensor numbers = factor.to(at::kCPU, at::kDouble).contiguous();
    layers[layer].scale.assign(numbers.data_ptr<double>(), numbers.data_ptr<double>() + numbers.numel());
  }
  return layers;
}

}  // namespace quell
