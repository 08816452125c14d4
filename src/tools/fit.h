// The nearest changes of one key that make a run fit in memory, found by trying them.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace quell {

struct FittingChange {
  std::string setting;   // "micro_batches=8", as an override is written
  std::string was;       // "4"
  double bytes = 0;      // memory then
};

// Of micro_batches, data.batch, model.context or model.image, model.layers, model.width and precision, those that can do it alone,
// each by the nearest value that was found. `outputs`: the vocabulary or the number of classes.
std::vector<FittingChange> fitting_changes(const RunConfig& config, int64_t outputs, double limit);

}  // namespace quell
