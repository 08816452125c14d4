// Learning-rate schedules as closed functions of the step: nothing to save, and any step can be asked for.
#pragma once

#include <cstdint>

#include "optim/config.h"

namespace quell {

// The factor in [0, 1] of update `step` (the first update is step 0). `plan` is the number of steps of the run, used
// where config.steps is absent; 0: no plan (the caller has refused decaying schedules then). Warm-up: (step + 1) /
// warmup for step < warmup; update `warmup` has factor 1 too, and there the decay begins. It reaches `final` at step
// config.steps, one after the last update, and stays there. inverse_sqrt has no end: sqrt(warmup / step), but never
// below `final`.
double schedule_factor(const ScheduleConfig& config, int64_t step, int64_t plan);

}  // namespace quell
