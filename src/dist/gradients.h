// Makes the gradient arena hold the SUM over ranks, once a step, on its last micro-batch. Works on plain buckets:
// ranges of the flat gradient buffer, from the last unit to the first, since backward finishes them in that order.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "dist/world.h"
#include "tensors/arena.h"

namespace quell {

struct Bucket {
  Range range;
};

class GradientReducer {
 public:
  // `gradients`: 1-D and contiguous. The buckets must cover it exactly once, from its end to its beginning (else Bug).
  GradientReducer(const World& world, at::Tensor gradients, std::vector<Bucket> buckets);
  // After the last micro-batch's backward: returns when the whole buffer holds the sum.
  void finish();

 private:
  const World& world_;
  at::Tensor gradients_;
  std::vector<Bucket> buckets_;
};

// One bucket a unit, last unit first.
std::vector<Bucket> buckets_of(const Arena& arena);

}  // namespace quell
