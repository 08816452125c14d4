// Evaluation on the fixed sets: sums over all their targets, with attention health of the first batch (there the exact largest
// logit too). It draws nothing and never changes training.
#pragma once

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
};

std::vector<Evaluation> evaluate(Run& run);

}  // namespace quell
