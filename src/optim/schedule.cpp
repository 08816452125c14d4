// The factor of each update, computed from its number alone.
#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace quell {

double schedule_factor(const ScheduleConfig& config, int64_t step, int64_t plan) {
  require(step >= 0, "schedule: a step below 0");
  if (step < config.warmup) return static_cast<double>(step + 1) / static_cast<double>(config.warmup);
  if (config.kind == ScheduleKind::constant) return 1;
  if (config.kind == ScheduleKind::inverse_sqrt) {
    const double from = static_cast<double>(std::max<int64_t>(config.warmup, 1));
    return std::max(config.final, std::sqrt(from / static_cast<double>(std::max<int64_t>(step, 1))));
  }
  const int64_t end = config.steps.value_or(plan);
  require(end > 0, "schedule: a decaying schedule without an end");
  if (step >= end) return config.final;

  // A run that is shorter than warm-up and decay together decays over what is left of it.
  const bool holds = config.kind == ScheduleKind::wsd;
  const int64_t decay = config.decay_steps.value_or(std::max<int64_t>(end / 10, 1));
  const int64_t begin = holds ? std::max(config.warmup, end - decay) : config.warmup;
  if (step < begin) return 1;
  const double done = static_cast<double>(step - begin) / static_cast<double>(end - begin);
  const double left = config.kind == ScheduleKind::cosine ? 0.5 * (1 + std::cos(std::numbers::pi * done)) : 1 - done;
  return config.final + (1 - config.final) * left;
}

}  // namespace quell
