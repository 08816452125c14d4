#include "nn/forward.h"

#include <vector>

#include "base/random.h"
#include "tensors/fill.h"

namespace quell {

uint64_t dropout_key(const Forward& forward, uint64_t place) { return key_of(forward.dropout_key, place); }

at::Tensor dropout(const Forward& forward, const at::Tensor& x, double probability, uint64_t place) {
  if (!forward.training || probability == 0) return x;
  return x * dropout_masks(x, probability, dropout_key(forward, place), forward.samples_B);
}

at::Tensor drop_path(const Forward& forward, const at::Tensor& x, double probability, uint64_t place) {
  if (!forward.training || probability == 0) return x;
  std::vector<int64_t> shape(static_cast<size_t>(x.dim()), 1);
  shape[0] = x.size(0);
  return x * dropout_masks(at::empty(shape, x.options()), probability, dropout_key(forward, places::path(place)), forward.samples_B);
}

}  // namespace quell
