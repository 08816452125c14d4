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

 private:
  const Model& model_;
  ops::LossOptions options_;
};

// [N, V] before any soft-cap.
at::Tensor logits_of(const Decoder& model, const Forward& forward, const Batch& batch);
at::Tensor logits_of(const Vit& model, const Forward& forward, const Batch& batch);

}  // namespace quell
