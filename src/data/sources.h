// The kinds of data as one value, and what the rest of the program asks of any: what may be written under `data`, sources of training
// batches, and fixed sets for evaluation.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "data/copy_source.h"
#include "data/image_source.h"
#include "data/random_source.h"
#include "data/source.h"

namespace quell {

using DataConfig = std::variant<TokenData, ImageData, CopyData, RandomData>;
const std::string* train_path(const DataConfig& config);  // null where the data are drawn, not read
std::string kind_of(const DataConfig& config);
int64_t& batch_of(DataConfig& config);  // samples of a step over the whole world
int64_t batch_of(const DataConfig& config);

using Source = std::variant<TokenSource, ImageSource, CopySource, RandomSource>;
// Samples [first, first + count) in training order; pure and thread-safe. Throws DataError for data that changed, UnreadableData where a disk
// cannot deliver them, Stopped where it is slow and a stop was asked for.
HostBatch read(const Source& source, int64_t first, int64_t count);
int64_t epoch_samples(const Source& source);  // of drawn data: all that can be numbered
const Vocabulary* vocabulary_of(const Source& source);  // null where the data have none

using FixedSet = std::variant<FixedTokens, FixedImages, FixedCopies, FixedRandom>;
HostBatch read(const FixedSet& set, int64_t first, int64_t count);
int64_t samples_of(const FixedSet& set);

// How many broken images were left out, with what was wrong with the first; "" where none was.
std::string broken_text(const Source& source);
std::string broken_text(const FixedSet& set);

// What is recorded of data in a run's folder, and shown at its start.
struct DataFacts {
  std::string path, digest;  // of drawn data: the kind, and ""
  std::string items;         // what `count` counts: tokens, images, or samples of drawn data
  int64_t count = 0;
  std::vector<DataPart> parts = {};  // of what is read
  std::string vocabulary = "";       // its digest, where the data have one
};
DataFacts facts_of(const TokenSet& set);
DataFacts facts_of(const ImageSet& set);
DataFacts facts_of(const Source& source);
DataFacts facts_of(const FixedSet& set);

}  // namespace quell
