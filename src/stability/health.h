// From the sums that forward passes leave (tensors/health.h) to the numbers that are reported: one small vector,
// combined over ranks, then means by division, and alarms (DESIGN section 8).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/describe.h"
#include "tensors/health.h"
#include "tensors/state.h"

namespace quell {

struct HealthConfig {
  int64_t every = 10;
  int64_t entropy_every = 100;
};
template <class V>
void describe(V& v, HealthConfig& c) {
  v.field("every", c.every, help("Steps between measurements of attention logits and q, k sizes; 0: never.")
              .unit("steps").at_least(0));
  v.field("entropy_every", c.entropy_every, help("Steps between measurements of attention entropy; 0: never.")
              .unit("steps").at_least(0));
}

// One entry a layer; within it one a head, or an empty vector where nothing was measured.
struct HealthReport {
  struct Layer {
    std::vector<double> logit_bound, logit_max, entropy, entropy_relative;  // by query head
    std::vector<double> q_rms, k_rms;                                        // by query head, by key/value head
    std::vector<double> copy_mass;  // by query head: mean attention weight of the watched keys, those that a copy repeats
  };
  std::vector<Layer> layers;
};

// The two vectors in which sums travel between ranks: one combined by max, one by +.
struct HealthVectors {
  at::Tensor maxima, sums;  // fp64, CPU
};
HealthVectors pack(const HealthSums& sums);
// Of the same tensors and heads, and of nothing: it changes nothing in a combination.
HealthSums nothing_of(HealthSums shape);
// `shape`: the sums of any rank, for which tensors were measured and how many heads they have. Throws Bug where the
// vectors are not of that shape. NaN stays NaN. A mean of nothing (a count of 0) is left out.
HealthReport unpack(const HealthSums& shape, const HealthVectors& combined);

// Alarms by thresholds grounded in published runs: a layer's largest logit above 1e3 (warning), above 1e4 or not a
// number (critical); relative entropy, a mean over heads, below 0.05 in a layer for three reports that measured it
// running (collapse, critical). Each is raised once when it begins, not at every report; an alarm of logits is over
// below half of 1e3.
struct Alarm {
  bool critical = false;
  std::string message;
};
class HealthAlarms {
 public:
  std::vector<Alarm> look(const HealthReport& report, int64_t step);
  // What has been raised, by layer: the integers "level.<layer>" and "low.<layer>".
  State state() const;
  void restore(const State& stored);

 private:
  std::vector<int> logit_level_;    // by layer: 0, 1 warned, 2 critical
  std::vector<int> low_entropy_;    // by layer: reports in a row
};

}  // namespace quell
