// `quell data verify`: whether data sets are whole, and whether those of a run are still what it was begun with.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "tools/checkpoints.h"

namespace quell {

// Each of `paths` is a set (data/verify.h), a folder that `quell data prepare` made, or a run's folder, whose sets are sought at the paths
// that it recorded. Throws DataError where one of them is none of these, before anything is read.
Answer verify_data(const std::vector<std::string>& paths, const Progress& progress);

}  // namespace quell
