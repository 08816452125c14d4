// Opens the data of a run: the training source and the evaluation sets, of the kind that the model takes. What the configuration
// leaves to the data (vocabulary, classes) is filled in.
#pragma once

#include <optional>
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

// What ids and classes stand for, which a set must share with what it is compared to.
struct Labels {
  std::string from;  // whose they are, for messages
  std::optional<Vocabulary> vocabulary;
  std::vector<std::string> classes;
};
Labels labels_of(const Source& source);

// Throws DataError for data that are not there, broken, or of another vocabulary or other classes than the model's.
Source open_source(RunConfig& config, const Progress& progress);
// A set of the kind of config.data: `count` samples evenly spaced over it, 0: all.
FixedSet open_set(const RunConfig& config, const EvaluationSet& set, int64_t count, const Labels& labels, const Progress& progress);
std::vector<EvaluationData> open_evaluations(const RunConfig& config, const Labels& labels, const Progress& progress);

// What the output has one logit for: the vocabulary's size or the number of classes, stated or the training data's.
int64_t outputs_of(RunConfig config);

}  // namespace quell
