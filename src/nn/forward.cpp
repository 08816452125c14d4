#include "nn/forward.h"

#include "base/random.h"
#include "tensors/fill.h"

namespace quell {

uint64_t dropout_key(const Forward& forward, uint64_t place) { return key_of(forward.dropout_key, place); }

at::Tensor dropout(const Forward& forward, const at::Tensor& x, double probability, uint64_t place) {
  if (!forward.training || probability == 0) return x;
  return x * dropout_masks(x, probability, dropout_key(forward, place), forward.samples_B);
}

}  // namespace quell
