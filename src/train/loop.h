// When things happen: steps, measurements, reports, evaluations, the end. Everything that can happen between two updates is
// visible here, in order.
#pragma once

#include <string>

#include "train/report.h"
#include "train/run.h"
#include "train/saves.h"

namespace quell {

enum class Ending { finished, out_of_time, stopped, bad_numbers };

struct LoopResult {
  Ending ending = Ending::finished;
  int64_t steps = 0;       // made, or left out as bad
  std::string what = "";  // of bad numbers: which, where
};

// Goes on from run.step until the plan is done, time is up, a stop was asked for, or the finite policy ends the run. What is due
// between two steps is done in this order: evaluation, the end, a stop, a save. An evaluation in which a stop is asked for is left
// at once and has no row, so that a resumed run makes it whole.
LoopResult train(Run& run, Report& report, Saves& saves);

}  // namespace quell
