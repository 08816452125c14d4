// The sums of a step (or of an evaluation) over micro-batches and ranks, and the means taken from them. Never a mean of means.
#pragma once

#include <ATen/core/Tensor.h>

#include "dist/world.h"
#include "ops/loss.h"

namespace quell {

class LossTotals {
 public:
  void add(const ops::LossSums& sums);
  void reduce(const World& world);  // once, when all micro-batches are in

  // After reduce(). Per scored target; 0 where nothing was scored.
  double targets() const;
  double objective() const;
  double cross_entropy() const;
  double z() const;      // as added to the objective
  double max_z() const;
  double log_z_mean() const;
  double log_z_max() const;
  double accuracy() const;
  double top5() const;
  double exact_match() const;  // per sample; 0 where samples were not counted
  // The objective's sum, fp64 scalar tensor: not finite where any target's loss is not.
  at::Tensor objective_sum() const { return sums_.select(0, 0); }

 private:
  double mean(int64_t index) const;
  at::Tensor sums_;     // undefined where nothing was added; fp64: objective, cross entropy, z, max-z, log Z, correct, top-5, count, samples, exact
  at::Tensor maximum_;  // fp64: largest log Z
};

}  // namespace quell
