// The order in which a data set of `count` items is seen: sample p of training lies in epoch p / count and is item
// shuffled(p, count, seed), a permutation that is computed and not stored, and another one in each epoch.
#pragma once

#include <cstdint>

namespace quell {

// `sample` and `count` - 1 are at least 0.
int64_t shuffled(int64_t sample, int64_t count, uint64_t seed);

}  // namespace quell
