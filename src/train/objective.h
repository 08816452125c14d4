// What is computed per micro-batch: from a batch to sums over its targets. A new task is a new objective here.
// Shapes: B batch, T position, C width, V vocabulary (or classes), N targets: B * T of text, B of images.
#pragma once

#include "data/batch.h"
#include "nn/forward.h"
#include "nn/model.h"
#include "ops/loss.h"
#include "train/config.h"

namespace quell {

// Next-token prediction of a decoder, classification of a vision transformer: the loss of every scored target's logits, with the
// auxiliary terms of `loss`.
class Objective {
 public:
  Objective(const Model& model, const LossConfig& loss);
  ops::LossSums operator()(const Forward& forward, const Batch& batch) const;

  // Its two parts: logits [N, V] before any soft-cap, and the loss of these, whose memory it may take.
  at::Tensor logits(const Forward& forward, const Batch& batch) const;
  ops::LossSums loss(const at::Tensor& logits_NV, const Forward& forward, const Batch& batch) const;

 private:
  const Model& model_;
  ops::LossOptions options_;
};

// How a run of this configuration runs its model over a batch.
Forward forward_of(const RunConfig& config, const Batch& batch, bool training);

}  // namespace quell
