// One optimiser step (DESIGN section 6): all micro-batches are drawn first; each one's objective is a SUM, divided by the number
// of targets of the whole step; gradients are reduced once; the norm of the reduced gradient is taken once; the finite check
// masks the update on the device. What is returned are tensors: nothing is read from the device here.
#pragma once

#include <string>

#include "tensors/health.h"
#include "train/run.h"
#include "train/totals.h"

namespace quell {

struct StepResult {
  LossTotals totals;
  at::Tensor norm;  // of the reduced gradient, before clipping
  at::Tensor bad;   // bool: the loss or the gradient is not finite, and nothing was updated
};

// `health` (or null) receives what this step's forward passes measure.
StepResult train_step(Run& run, int64_t step, HealthSums* health);

// The first tensor of step `step` that is not finite, found by computing the step again with checks on: "the output of blocks.2"
// or "the gradient of blocks.2.mlp.up.weight", and where the samples lie. Gradients are overwritten.
std::string first_bad_tensor(Run& run, int64_t step);

}  // namespace quell
