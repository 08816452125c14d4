#include "data/order.h"

#include "base/error.h"
#include "base/random.h"

namespace quell {

int64_t shuffled(int64_t sample, int64_t count, uint64_t seed) {
  require(sample >= 0 && count > 0, "shuffled: samples are counted from 0, of a set that has some");
  const uint64_t order = key_of(key_of(seed, "data.order"), static_cast<uint64_t>(sample / count));
  return static_cast<int64_t>(permuted(static_cast<uint64_t>(sample % count), static_cast<uint64_t>(count), order));
}

}  // namespace quell
