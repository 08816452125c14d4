#include "data/windows.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "data/order.h"

namespace quell {

// With an offset of up to context - 1, (tokens - context) / context windows fit; a text too short for that has one
// window, and the offsets that its length allows.
Windows::Windows(int64_t tokens, int64_t context, uint64_t seed) : tokens_(tokens), context_(context), seed_(seed) {
  require(context > 0 && tokens > context, "Windows: a text shorter than one window");
  count_ = std::max<int64_t>(1, (tokens - context) / context);
}

int64_t Windows::begin(int64_t sample) const {
  const int64_t window = shuffled(sample, count_, seed_);
  const auto offsets = static_cast<double>(std::min(context_, tokens_ - context_));
  const uint64_t key = key_of(seed_, "data.offset");
  const auto offset = static_cast<int64_t>(unit_double(key, static_cast<uint64_t>(epoch(sample))) * offsets);
  return offset + window * context_;
}

int64_t fixed_window_count(int64_t tokens, int64_t context) { return std::max<int64_t>(0, (tokens - 1) / context); }

int64_t fixed_window(int64_t i, int64_t count, int64_t tokens, int64_t context) {
  require(i >= 0 && i < count && tokens > context, "fixed_window: no such window");
  if (count == 1) return 0;
  const auto last = static_cast<__int128>(tokens - 1 - context);  // i * last may pass 64 bits
  return static_cast<int64_t>(last * i / (count - 1));
}

}  // namespace quell
