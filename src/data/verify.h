// Whether a data set is what it is meant to be, by every byte of it: what `quell data verify` asks. All that is wrong is told, not the
// first only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.h"
#include "data/sources.h"

namespace quell {

struct DataCheck {
  std::string path;
  std::string looked_at;              // "12 blocks of 2 files", "60000 images"
  std::vector<std::string> problems;  // each begins with a file; of broken images the first `listed_images`
  int64_t more_problems = 0;          // that are not listed
  std::optional<DataFacts> facts;     // what is there now, where the set can be opened

  static constexpr size_t listed_images = 100;
};

// Throws DataError where no set is at `path`, or one that there is nothing to compare with: a raw file without hashes kept beside it, whose
// type is not known either (`automatic`).
void require_set(const std::string& path, TokenType type);

// Of a folder of tokens or a raw .bin file: every block against its hash. Of an IDX pair: both files, whole. Of a folder of images: each
// is decoded. Throws as require_set() does. Writes nothing but what is kept beside a raw file that is sound.
DataCheck check_data(const std::string& path, TokenType type, const Progress& progress);

}  // namespace quell
