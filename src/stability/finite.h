// The finite policy: what happens when a step's loss or gradient is not finite. Decided from reduced values only.
#pragma once

#include <cstdint>
#include <string>

#include "config/describe.h"
#include "tensors/state.h"

namespace quell {

enum class OnNonfinite { stop, skip };
template <>
inline constexpr auto choices<OnNonfinite> = std::array{
    Choice{OnNonfinite::stop, "stop", "end the run with exit code 5"},
    Choice{OnNonfinite::skip, "skip", "leave the step out, at most skip_limit times in a row"}};

struct StabilityConfig {
  OnNonfinite on_nonfinite = OnNonfinite::stop;
  int64_t skip_limit = 10;
};
template <class V>
void describe(V& v, StabilityConfig& c) {
  v.field("on_nonfinite", c.on_nonfinite, help("What to do when a loss or gradient is not finite."));
  v.field("skip_limit", c.skip_limit, help("skip only: bad steps in a row that are left out; one more ends the run.")
              .unit("steps").at_least(1));
}

// Follows the finite flags of the steps.
class FinitePolicy {
 public:
  explicit FinitePolicy(const StabilityConfig& config) : config_(config) {}
  // Whether the run must end now.
  bool must_stop(bool bad);
  int64_t skipped() const { return skipped_; }  // in all
  int64_t in_a_row() const { return in_a_row_; }
  State state() const { return {{}, {{"in_a_row", in_a_row_}, {"skipped", skipped_}}, {}}; }
  void restore(const State& stored);

 private:
  StabilityConfig config_;
  int64_t skipped_ = 0, in_a_row_ = 0;
};

}  // namespace quell
