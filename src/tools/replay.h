// One recorded step made again, from the nearest checkpoint before it: was what happened there in the numbers, or in the machine?
#pragma once

#include "tools/checkpoints.h"

namespace quell {

// Trains in memory from the newest sound checkpoint of RUN before `step` up to it, and holds the step's numbers against the row of
// metrics.jsonl, key by key. Yes: the same bits, so what was recorded follows from the data and the weights (persistent); no: it does
// not come again (transient: the machine, or another build, machine type or number of threads). Writes nothing into RUN. Throws
// UsageError where the metrics have no such row, CheckpointError where no checkpoint before it is sound.
Answer replay(const std::string& run, int64_t step);

}  // namespace quell
