// Counts bad steps and says when there are too many.
#include "stability/finite.h"

namespace quell {

bool FinitePolicy::must_stop(bool bad) {
  if (!bad) {
    in_a_row_ = 0;
    return false;
  }
  ++in_a_row_;
  if (config_.on_nonfinite == OnNonfinite::stop || in_a_row_ > config_.skip_limit) return true;
  ++skipped_;
  return false;
}

void FinitePolicy::restore(const State& stored) {
  in_a_row_ = stored.integers.at("in_a_row");
  skipped_ = stored.integers.at("skipped");
}

}  // namespace quell
