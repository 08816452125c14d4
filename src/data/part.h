// What a data set is made of, as a run records it: by this a part that changed later is named. Never one entry an image, since
// a set may have a million.
#pragma once

#include <cstdint>
#include <string>

namespace quell {

struct DataPart {
  std::string name;           // of a file beside its set, or of a class of images
  int64_t files = 1;          // of a class: how many
  int64_t bytes = 0;          // of all of them
  int64_t modified = 0;       // nanoseconds since 1970; of a class: the newest
  std::string digest;         // of its contents; of a class: of its files' names and sizes
  bool is_class = false;
};

}  // namespace quell
