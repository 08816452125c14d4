// Sums the gradient arena over the ranks, bucket by bucket.
#include "dist/gradients.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace quell {

GradientReducer::GradientReducer(const World& world, at::Tensor gradients, std::vector<Bucket> buckets)
    : world_(world), gradients_(std::move(gradients)), buckets_(std::move(buckets)) {
  require(gradients_.dim() == 1 && gradients_.is_contiguous(), "gradient reducer: not one flat buffer");
  int64_t left = gradients_.numel();
  for (const Bucket& bucket : buckets_) {
    require(bucket.range.end == left && bucket.range.begin <= left && bucket.range.begin >= 0,
            "gradient reducer: buckets must cover the gradients once, from the last element to the first");
    left = bucket.range.begin;
  }
  require(left == 0, "gradient reducer: buckets must reach the first element");
}

void GradientReducer::finish() {
  for (const Bucket& bucket : buckets_) {
    at::Tensor part = gradients_.narrow(0, bucket.range.begin, bucket.range.size());
    world_.sum(part);
  }
}

std::vector<Bucket> buckets_of(const Arena& arena) {
  std::vector<Bucket> buckets;
  for (const Range& unit : arena.units()) buckets.push_back({unit});
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

}  // namespace quell
