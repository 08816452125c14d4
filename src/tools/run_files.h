// What a finished run's folder holds, for the commands that work on one: its configuration, and what its outputs stand for.
#pragma once

#include <string>

#include "train/config.h"
#include "train/sources.h"

namespace quell {

// The path of a file that a run's folder must hold. Throws CheckpointError "RUN/name: not there; RUN holds no <what>".
std::string require_file(const std::string& run, const char* name, const char* what);

// RUN/config.yaml, in which everything is resolved. Throws UsageError where RUN is no folder,
// CheckpointError where it is another file than the run wrote.
RunConfig config_of_run(const std::string& run);

// From RUN/vocabulary.json or RUN/classes.json, where they are.
Labels labels_of_run(const std::string& run);

}  // namespace quell
