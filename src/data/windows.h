// The order in which windows of a text are seen (DESIGN section 7). The position in the data is the number of samples
// consumed since the run began; sample p lies in epoch p / count() and is window permuted(p % count()) of that epoch,
// at an offset drawn for that epoch: a pure function of (seed, p), the same for any number of ranks, micro-batches and
// workers.
#pragma once

#include <cstdint>

namespace quell {

class Windows {
 public:
  // `tokens` is at least context + 1.
  Windows(int64_t tokens, int64_t context, uint64_t seed);
  int64_t count() const { return count_; }  // windows in an epoch, which do not overlap as inputs
  int64_t epoch(int64_t sample) const { return sample / count_; }
  int64_t begin(int64_t sample) const;  // first token; the window is [begin, begin + context + 1)

 private:
  int64_t tokens_, context_, count_ = 0;
  uint64_t seed_;
};

// How many windows fit a text side by side: what evaluation of all of it reads.
int64_t fixed_window_count(int64_t tokens, int64_t context);
// `count` windows that never change, evenly spaced from the first token to the last: what evaluation reads. Window i
// begins at the value returned. They overlap only where count is above fixed_window_count().
int64_t fixed_window(int64_t i, int64_t count, int64_t tokens, int64_t context);

}  // namespace quell
