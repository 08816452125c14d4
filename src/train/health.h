// Attention health of a step: what to measure when, and the sums of all ranks as a report.
#pragma once

#include "dist/world.h"
#include "stability/health.h"
#include "train/run.h"

namespace quell {

// What step `step` measures; nothing in most of them. The first and the last step measure everything but the exact logit.
HealthSums health_wanted(const Run& run, int64_t step);

// One small vector of maxima and one of sums are combined over the ranks.
HealthReport report_of(const HealthSums& sums, const World& world);

// Extrema of one layer's QK-norm factors (q and k together, weights as they act), and learned scales.
struct LayerWeights {
  double norm_min = 0, norm_max = 0;
  bool has_norm = false;
  std::vector<double> scale;  // [1] or [H]; empty where not learned
};
std::vector<LayerWeights> layer_weights(const Run& run);

}  // namespace quell
