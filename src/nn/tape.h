// The models on the tape (ops/tape.h): the same operations in the same order and scopes as the modules of this room, so that what
// is alive when follows from the same rules. Sizes only; nothing is computed.
#pragma once

#include <functional>

#include "nn/config.h"
#include "ops/tape.h"

namespace quell {

struct TapedModel {
  // Whether attention of such a layer makes its scores.
  std::function<bool(const AttentionConfig&)> explicit_scores;
  int64_t first_trained_unit = 0;  // nothing is saved before it
  bool output_trained = true;      // the matrix of the output logits
};

// The logits of `batch` samples. The samples themselves are not counted.
ops::Sized logits_on(ops::Tape& tape, const ModelConfig& config, double batch, const TapedModel& model);

}  // namespace quell
