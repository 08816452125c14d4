// When things happen: steps, measurements, reports, evaluations, the end. Everything that can happen between two updates is
// visible here, in order.
#pragma once

#include "train/report.h"
#include "train/run.h"

namespace quell {

enum class Ending { finished, out_of_time, stopped };

struct LoopResult {
  Ending ending = Ending::finished;
  int64_t steps = 0;  // updates made or skipped
};

// Runs until the plan is done, time is up, or a stop was asked for. Throws NumericsError when the finite policy ends the run.
LoopResult train(Run& run, Report& report);

}  // namespace quell
