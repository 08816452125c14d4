// Evaluation on fixed sets: sums over all their targets, with attention health of the first batch (there the exact largest logit
// too). It draws nothing and never changes training. The same for the same weights, set and number of threads, whoever asks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stability/health.h"
#include "train/run.h"
#include "train/totals.h"

namespace quell {

struct Evaluation {
  std::string name;
  LossTotals totals;
  HealthReport health;
  bool has_top5 = false;  // of classes
  bool has_exact_match = false;  // of the copy task, and its attention mass
};

struct Watch {
  // Called with each batch of this rank and its logits [N, V] before any soft-cap.
  std::function<void(const Batch& batch, const at::Tensor& logits_NV)> batch = {};
  // Asked after each batch: where it holds on any rank, all throw Stopped.
  std::function<bool()> must_stop = {};
};

// Where one rank cannot read its samples all throw (dist/agreement.h).
Evaluation evaluate_set(const RunConfig& config, const World& world, const Objective& objective, const EvaluationData& set,
                        const Watch& watch = {});
// The run's sets, and where it has a moving average, each again with that, as <name>.ema.
std::vector<Evaluation> evaluate(Run& run, const Watch& watch = {});

}  // namespace quell
