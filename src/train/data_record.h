// What a run keeps of its data, in data.json and in every checkpoint's manifest: of each set its path, size and digest, and of each part
// (a shard, a file, a class of images) size, time and digest. And what is said of data that are not what was kept: the file by name.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "data/sources.h"
#include "train/run.h"

namespace quell {

// By the set's name: "train", and those of the evaluation sets.
Json data_record(const Run& run);
Json record_of(const DataFacts& set);  // one set's entry

// How a set differs from the entry that was kept of it, as far as both say: old runs kept fewer members.
struct DataDifference {
  std::string what;                // "its digest is ..., was ..."; "" where the data are the same
  std::vector<std::string> parts;  // "00001.bin: cut from 80 to 40 bytes", one for each that was added, removed or changed
  std::string rewritten;           // of the same data: the first part that has another time than was kept, and how many more
};
DataDifference difference_of(const Json& before, const Json& now);  // throws Json::exception where `before` is damaged
// In lines, of which the first says what, and how to mend it. Not all parts, where there are many.
std::string text_of(const DataDifference& difference, const Json& before, const Json& now);

// Throws DataError where training data, or evaluation data under the same name and path, are not those of the checkpoint: no --accept
// takes them. Warns of data that were only written again, and of an evaluation set whose path was changed to other data.
void require_same_data(const Run& run, const Json& before, const Json& now);

}  // namespace quell
