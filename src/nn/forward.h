// What every forward takes besides its tensors: how it is run, the keys of everything random in it, where health sums go, and the
// seam through which a block is later recomputed, gathered or freed. A module never knows which is on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "ops/options.h"
#include "tensors/health.h"

namespace quell {

struct Forward {
  bool training = false;
  uint64_t dropout_key = 0;      // of the run; draws are keyed by (this, sample, place)
  at::Tensor samples_B;          // the batch's sample indices (int64, CPU); needed with dropout only
  at::Tensor documents_BT;       // or undefined: attention stays inside documents
  Kernels kernels = Kernels::automatic;
  HealthSums* health = nullptr;  // null: nothing is measured

  using Body = std::function<at::Tensor(const at::Tensor&)>;
  // Runs `body` on x, the part of the model that uses the parameters of `unit`.
  std::function<at::Tensor(int64_t unit, const at::Tensor& x, const Body& body)> around =
      [](int64_t, const at::Tensor& x, const Body& body) { return body(x); };
};

// x with elements dropped in training: the mask of sample b is a function of (dropout_key, samples_B[b], place), so it does not
// depend on how a batch is cut into micro-batches or ranks. x is [B, ...]; `place` tells apart the calls of one forward pass.
at::Tensor dropout(const Forward& forward, const at::Tensor& x, double probability, uint64_t place);

}  // namespace quell
