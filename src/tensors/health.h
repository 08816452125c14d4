// HealthSums: what a forward pass leaves for the attention health of DESIGN section 8. Only maxima and sums, so that
// micro-batches and ranks combine by max and by +; the division into means happens once, in train/report.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace quell {

// One layer; H query heads, G key/value heads. Tensors are fp32 on the model's device, detached; undefined where not measured.
struct LayerHealth {
  at::Tensor bound_H;              // largest log-sum-exp of a row: max
  at::Tensor logit_max_H;          // exact largest logit: max
  at::Tensor entropy_H;            // sum over rows but the first of each sequence, nats
  at::Tensor entropy_relative_H;   // sum over the same rows of entropy / log(visible keys)
  double entropy_rows = 0;         // rows in the two sums, per head
  at::Tensor q_square_H, k_square_G;  // sums of squares before the norm
  double q_count = 0, k_count = 0;    // elements in them, per head
  at::Tensor mass_H;                  // sum over watched queries of the attention weight of the key each is watched for
  double mass_rows = 0;               // watched queries in it, per head
};

struct HealthSums {
  // What the coming forward passes are to measure.
  bool bounds = false;
  bool entropy = false;
  bool exact_logit = false;
  at::Tensor watched_BT;  // with bounds: for each query of the coming batch the key whose weight is summed, -1 for none; or undefined

  std::vector<LayerHealth> layers;  // a layer appends or combines its own entry
  void add(int64_t layer, const LayerHealth& measured);  // max of maxima, sum of sums
};

}  // namespace quell
