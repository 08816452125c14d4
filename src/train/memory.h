// The memory of a run before it is made: by part of the model, and by class at the step's peak. Values, copies, gradients and
// moments are those of the arena's own layout; the rest is a step on the tape (ops/tape.h, nn/tape.h). For the CPU; no data are
// opened. What data hold in memory (an IDX pair) and what measurements of attention add for a moment are not in it.
#pragma once

#include <string>
#include <vector>

#include "nn/model.h"
#include "tensors/arena.h"
#include "train/config.h"

namespace quell {

// The parameters of a configuration with their layout, and no memory. Not copied: the layout points into the list.
struct PlannedParameters {
  PlannedParameters(const RunConfig& config, int64_t outputs);
  PlannedParameters(const PlannedParameters&) = delete;
  PlannedParameters& operator=(const PlannedParameters&) = delete;

  ModelConfig model;  // with its outputs
  ParameterList list;
  ArenaLayout layout;
};

// Declares the parameters and freezes those of optimizer.freeze. Throws UsageError for a pattern that matches none.
Model declare_model(ParameterList& parameters, const ModelConfig& model, const OptimizerConfig& optimizer);

// Bytes by class.
struct MemoryClass {
  std::string name;
  double bytes = 0;
  std::string advice;  // what makes it smaller; "" for what nothing does
};
// Largest first; together they are the process's resident memory at its peak. `outputs`: the vocabulary or the number of classes.
std::vector<MemoryClass> memory_classes(const RunConfig& config, int64_t outputs);
double total_of(const std::vector<MemoryClass>& classes);

// What is said when memory runs out: the largest class and three changes that help.
std::string out_of_memory_message(const RunConfig& config, int64_t outputs);

}  // namespace quell
