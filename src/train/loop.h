// When things happen: steps, measurements, reports, evaluations, the end. Everything that can happen between two updates is
// visible here, in order.
#pragma once

#include <string>

#include "train/report.h"
#include "train/run.h"

namespace quell {

enum class Ending { finished, out_of_time, stopped, bad_numbers };

struct LoopResult {
  Ending ending = Ending::finished;
  int64_t steps = 0;       // made, or left out as bad
  std::string what = "";  // of bad numbers: which, where
};

// Runs until the plan is done, time is up, a stop was asked for, or the finite policy ends the run.
LoopResult train(Run& run, Report& report);

}  // namespace quell
