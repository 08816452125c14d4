#include "nn/forward.h"

#include "base/random.h"
#include "tensors/fill.h"

namespace quell {

at::Tensor dropout(const Forward& forward, const at::Tensor& x, double probability, uint64_t place) {
  if (!forward.training || probability == 0) return x;
  const uint64_t key = key_of(forward.dropout_key, place);
  return x * dropout_masks(x, probability, key, forward.samples_B);
}

}  // namespace quell
