// How a run begins: new, or from a checkpoint; and its whole state as it is saved and taken back. What is saved, and what has no
// state, is listed in docs/checkpoints.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "train/folder.h"
#include "train/report.h"
#include "train/run.h"

namespace quell {

struct Beginning {
  std::string folder;
  std::optional<FolderLock> lock;   // where the folder is gone on with; else it is made once the run is built
  std::optional<Checkpoint> from;   // nothing: from the first step
  std::string id;                   // of the run that is gone on with; "": a new one
};

// Decides by `resume` of the run file, before anything is allocated: every byte of the checkpoint has been read and checked.
// Throws UsageError where the folder must be new and is not, CheckpointError where a checkpoint is asked for and there is none
// that is sound.
Beginning begin_run(const std::string& resume, const std::string& folder);

// The tensors of it by file: weights, optimizer, and where there is one, ema. Views.
State model_state(const Run& run);

// Everything that the next step depends on, and where the reports are. Tensors are views.
State state_of(const Run& run);
State state_of(const Run& run, const Report& report);
// Makes it the run's, which has the same names and shapes.
void set_state(Run& run, const State& stored);

// Puts the run where the checkpoint was taken. Throws CheckpointError with all that is missing or does not fit, before anything is
// changed.
void restore(Run& run, const Checkpoint& from);
// Likewise what reports go on from, and sets the metrics' later rows aside.
void restore(Report& report, const Checkpoint& from);

// Compares the run's file and data with the checkpoint's; see train/changes.h. Returns what changed, in lines.
std::vector<std::string> require_same_run(const Run& run, const Json& data, const Checkpoint& from, const std::vector<std::string>& accepted);

}  // namespace quell
