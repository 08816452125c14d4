// One optimiser step (DESIGN section 6): all micro-batches are drawn first; each one's objective is a SUM, divided by the number
// of targets of the whole step; gradients are reduced once; the norm of the reduced gradient is taken once; the finite check
// masks the update on the device. Of its results only the wishes are read from the device here.
#pragma once

#include <string>

#include "tensors/health.h"
#include "train/run.h"
#include "train/totals.h"
#include "train/wishes.h"

namespace quell {

struct StepResult {
  LossTotals totals;  // of this rank: reduce() makes them the world's, where they are told
  at::Tensor norm;  // of the reduced gradient, before clipping
  at::Tensor bad;   // bool: the loss or the gradient is not finite, and nothing was updated
  Wishes wishes;    // of all ranks
};

// `health` (or null) receives what this step's forward passes measure on this rank; `asked` is called once they are done. Over ranks there
// are two small reductions: of the targets before, and of what is not finite and what is wished for after. Where one rank cannot read its
// samples all throw (dist/agreement.h), before anything is computed.
StepResult train_step(Run& run, int64_t step, HealthSums* health, const Asked& asked = {});

// The first tensor of this rank's part of step `step` that is not finite, found by computing it again with checks on: "the output of
// blocks.2" or "the gradient of blocks.2.mlp.up.weight"; "" where all are finite. Gradients are overwritten.
std::string first_bad_tensor(Run& run, int64_t step);

}  // namespace quell
