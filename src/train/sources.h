// Opens the data of a run: the training source and the evaluation sets, of the kind that the model takes. What the configuration
// leaves to the data (vocabulary, classes) is filled in.
#pragma once

#include <string>
#include <vector>

#include "base/progress.h"
#include "data/sources.h"
#include "train/config.h"

namespace quell {

struct EvaluationData {
  std::string name;
  FixedSet data;
};

// Throws DataError for data that are not there, broken, or of another vocabulary or number of classes than the model's.
Source open_source(RunConfig& config, const Progress& progress);
std::vector<EvaluationData> open_evaluations(const RunConfig& config, const Source& training, const Progress& progress);

// What the output has one logit for: the vocabulary's size or the number of classes, stated or the training data's.
int64_t outputs_of(RunConfig config);

}  // namespace quell
