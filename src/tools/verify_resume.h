// The proof that a run file's runs go on exactly, on this machine, by doing it: once straight, once killed again and again.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "tools/checkpoints.h"

namespace quell {

struct VerifyResumeOptions {
  std::vector<std::string> run;  // the run file and its overrides, as on the command line of `quell train`
  std::string folder;            // where both runs are made; removed again where they agree
  int64_t steps = 60;
  int64_t kills = 10;
  uint64_t seed = 1;             // of the moments
  Progress progress;             // on_note: what is being done
};

// Runs this program `train` on the run file for `steps` steps; then again with `kills` SIGKILLs, each followed by resume=auto: every
// second one at a random moment, the others as soon as a save is seen under way. Then every row of metrics.jsonl but for the clock, and
// every tensor and number of the last checkpoint, are compared. No: the first difference by name. Throws MachineError where the
// straight run fails, with what it said, UsageError where an override sets what this sets itself (steps, checkpoint.every, resume, time).
Answer verify_resume(const VerifyResumeOptions& options);

}  // namespace quell
