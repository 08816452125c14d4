// The kinds of data as one value, and what the rest of the program asks of any: what may be written under `data`, sources of training
// batches, and fixed sets for evaluation.
#pragma once

#include <string>
#include <variant>

#include "data/image_source.h"
#include "data/source.h"

namespace quell {

using DataConfig = std::variant<TokenData, ImageData>;
const std::string& train_path(const DataConfig& config);
int64_t& batch_of(DataConfig& config);  // samples of a step over the whole world
int64_t batch_of(const DataConfig& config);

using Source = std::variant<TokenSource, ImageSource>;
// Samples [first, first + count) in training order; pure and thread-safe.
HostBatch read(const Source& source, int64_t first, int64_t count);
int64_t epoch_samples(const Source& source);
const Vocabulary* vocabulary_of(const Source& source);  // null where the data have none

using FixedSet = std::variant<FixedTokens, FixedImages>;
HostBatch read(const FixedSet& set, int64_t first, int64_t count);
int64_t samples_of(const FixedSet& set);

// What is recorded of data in a run's folder, and shown at its start.
struct DataFacts {
  std::string path, digest;
  std::string items;  // what `count` counts: tokens or images
  int64_t count = 0;
};
DataFacts facts_of(const Source& source);
DataFacts facts_of(const FixedSet& set);

}  // namespace quell
