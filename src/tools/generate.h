// `quell generate`: text from a run's weights. Reads the run's folder (config.yaml, vocabulary.json, weights.safetensors) and
// nothing else, so a folder that was moved or whose data is gone still speaks.
#pragma once

#include <functional>
#include <string>

#include "train/sample.h"

namespace quell {

struct GenerateOptions {
  std::string run;
  std::string prompt = "\n";
  SampleOptions sample;
};

// Calls `write` with the prompt and then with each new piece of text. Throws CheckpointError, DataError or UsageError.
void generate(const GenerateOptions& options, const std::function<void(const std::string&)>& write);

}  // namespace quell
