#include "nn/forward.h"

#include "base/error.h"
#include "base/random.h"
#include "tensors/fill.h"

namespace quell {

at::Tensor dropout(const Forward& forward, const at::Tensor& x, double probability, uint64_t place) {
  if (!forward.training || probability == 0) return x;
  require(forward.samples_B.defined() && forward.samples_B.size(0) == x.size(0), "dropout: no sample indices");
  const uint64_t key = key_of(forward.dropout_key, place);
  const auto samples = forward.samples_B.accessor<int64_t, 1>();
  std::vector<at::Tensor> masks;
  for (int64_t b = 0; b < x.size(0); ++b) {
    masks.push_back(dropout_mask(x[b], probability, key_of(key, static_cast<uint64_t>(samples[b]))));
  }
  return x * at::stack(masks);
}

}  // namespace quell
