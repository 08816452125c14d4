// What every forward takes besides its tensors: how it is run, the keys of everything random in it, where health sums go, and the
// seam through which a block is later recomputed, gathered or freed. A module never knows which is on.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

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
  std::vector<at::Tensor>* attention = nullptr;  // where not null, every layer appends its weights [B, H, T, T], for looking at

  using Body = std::function<at::Tensor(const at::Tensor&)>;
  // Runs `body` on x, the part of the model that uses the parameters of `unit`.
  std::function<at::Tensor(int64_t unit, const at::Tensor& x, const Body& body)> around =
      [](int64_t, const at::Tensor& x, const Body& body) { return body(x); };
};

// Places of the draws of one forward pass: no two have the same, or one mask would decide about two things.
namespace places {
constexpr uint64_t embedding = 0;
constexpr uint64_t attention_weights(int64_t layer) { return static_cast<uint64_t>(3 * layer) + 1; }
constexpr uint64_t attended(int64_t layer) { return static_cast<uint64_t>(3 * layer) + 2; }
constexpr uint64_t transformed(int64_t layer) { return static_cast<uint64_t>(3 * layer) + 3; }
constexpr uint64_t path(uint64_t place) { return place | uint64_t{1} << 63; }  // of the drop path beside a dropout
}  // namespace places

// The key of the draws at a place; the sample's index is joined to it by tensors/fill.h's dropout_masks.
uint64_t dropout_key(const Forward& forward, uint64_t place);

// x with elements dropped in training: the mask of sample b is a function of (dropout_key, samples_B[b], place), so it does not
// depend on how a batch is cut into micro-batches or ranks. x is [B, ...]; `place`: see above.
at::Tensor dropout(const Forward& forward, const at::Tensor& x, double probability, uint64_t place);

// The same with one draw a sample: all of x[b], or nothing.
at::Tensor drop_path(const Forward& forward, const at::Tensor& x, double probability, uint64_t place);

}  // namespace quell
