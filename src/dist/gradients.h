// Makes the gradient arena hold the SUM over ranks, once a step. Works on plain buckets: ranges of the flat gradient buffer with the
// parameters whose gradients lie there, from the last unit to the first, since backward finishes them in that order. On the last
// micro-batch a bucket leaves as soon as its last parameter has its gradient, while backward goes on with the units before it; always
// in the order of buckets, whatever order gradients come in, so that all ranks do the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "dist/world.h"
#include "tensors/arena.h"

namespace quell {

struct Bucket {
  Range range;
  std::vector<at::Tensor> parameters;  // leaves; one without a gradient in some backward holds its bucket back until finish()
};

class GradientReducer {
 public:
  // `gradients`: 1-D and contiguous. The buckets must cover it exactly once, from its end to its beginning (else Bug).
  GradientReducer(const World& world, at::Tensor gradients, std::vector<Bucket> buckets);
  ~GradientReducer();
  GradientReducer(GradientReducer&&) = delete;

  // Before the last micro-batch's forward pass: of the backward that follows, buckets leave by themselves.
  void arm();
  // After that backward: returns when the whole buffer holds the sum. Without arm() everything leaves here.
  void finish();

 private:
  void launch_ready();

  const World& world_;
  at::Tensor gradients_;
  std::vector<Bucket> buckets_;
  struct Hooks;
  std::unique_ptr<Hooks> hooks_;
  std::vector<int64_t> missing_;   // gradients that a bucket waits for
  std::vector<Pending> pending_;   // of the buckets that have left
  bool armed_ = false;
};

// Units from the last to the first, joined until a bucket has `bytes`: small messages cost their latency, large ones leave late.
std::vector<Bucket> buckets_of(const Arena& arena, const ParameterList& parameters, int64_t bytes = int64_t{4} << 20);

}  // namespace quell
