// What is computed per micro-batch: from a batch to sums over its targets. A new task is a new objective here.
// Shapes: B batch, T position, C width, V vocabulary, N = B * T.
#pragma once

#include "data/batch.h"
#include "nn/decoder.h"
#include "nn/forward.h"
#include "ops/loss.h"
#include "train/config.h"

namespace quell {

// Next-token prediction: cross entropy with the auxiliary terms of `loss`.
class LanguageModel {
 public:
  LanguageModel(const Decoder& model, const LossConfig& loss);
  ops::LossSums operator()(const Forward& forward, const Batch& batch) const;

 private:
  const Decoder& model_;
  ops::LossOptions options_;
};

}  // namespace quell
