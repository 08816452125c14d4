#include "checkpoint/config.h"

namespace quell {

std::optional<bool> larger_is_better(const std::string& metric) {
  if (metric.ends_with(".loss")) return false;
  if (metric.ends_with(".accuracy") || metric.ends_with(".accuracy_top5") || metric.ends_with(".exact_match")) return true;
  return std::nullopt;
}

void check(Problems& problems, const CheckpointConfig& config) {
  if (config.keep_best && !larger_is_better(*config.keep_best)) {
    problems.add("keep_best", "must be the loss, accuracy, accuracy_top5 or exact_match of an evaluation set, like valid.loss");
  }
}

}  // namespace quell
