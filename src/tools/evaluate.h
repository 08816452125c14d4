// A run's weights on a fixed set: the numbers that training reports, in the same bits for the same set, and what only a look at
// every target shows: bits per byte of text, the confusion of classes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "train/evaluate.h"

namespace quell {

struct EvaluateOptions {
  std::string run;
  std::vector<std::string> data;   // sets to evaluate; none: those of the run's configuration
  std::optional<int64_t> batches;  // of data.batch samples, evenly spaced; absent: as the run did; 0: all
  std::optional<int64_t> threads;  // absent: as the run had
  bool ema = false;                // the moving average, ema.safetensors
  std::string dump;                // a folder for what dump.h writes of each set, over nothing that is there; "": none
  std::vector<int64_t> samples;    // those whose attention is dumped
  Progress progress;               // scanning data
};

struct SetReport {
  Evaluation evaluation;
  std::string path;
  int64_t samples = 0;
  std::optional<double> bits_per_byte;  // of text whose vocabulary is known
  std::vector<std::string> classes;     // of images
  std::vector<std::vector<int64_t>> confusion;  // [true class][predicted class]: images
  std::string broken;                           // of images that were left out; "": none
};

// Throws UsageError where there is nothing to evaluate, CheckpointError where the run's folder lacks something.
std::vector<SetReport> evaluate_run(const EvaluateOptions& options);

Json to_json(const SetReport& report);
std::string to_text(const SetReport& report);  // its table fits 80 columns

}  // namespace quell
