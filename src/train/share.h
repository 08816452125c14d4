// That all ranks of a run are in one state: the first one's.
#pragma once

#include "train/run.h"

namespace quell {

// Throws UsageError on every rank where one has another run file, or other data, than rank 0.
void require_one_run(const Run& run);

// What a checkpoint holds of a run goes from rank 0 to the others: of a resumed run only rank 0 has read it. On every rank.
void share_state(Run& run);

}  // namespace quell
