// `quell train` from a loaded configuration to the end of the run: process, run, folder, loop, weights, last words.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "train/config.h"

namespace quell {

struct TrainOptions {
  std::string folder;   // "": runs/<name>
  bool dry_run = false; // two steps, of which the second is timed; nothing written
  int64_t overfit = 0;  // train on the first N samples
  bool quiet = false;
  std::vector<std::string> accept;  // keys whose change a resumed run takes
};

// Tells the log how far the scanning of data is, and what a person should know of them. Where a stop is asked for meanwhile it throws
// an Error of this code.
Progress scanning(Exit stopped = Exit::stopped);

// The exit code: finished, or stopped on request with a checkpoint saved.
int run_training(const RunConfig& config, const TrainOptions& options);

}  // namespace quell
