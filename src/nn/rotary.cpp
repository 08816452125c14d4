#include "nn/rotary.h"

namespace quell {

Rotary::Rotary(const PositionConfig& config, int64_t head_width) {
  if (config.kind != PositionKind::rope) return;
  options_ = {.base = config.base,
              .width = config.width.value_or(head_width),
              .pairing = config.pairing,
              .scaling = config.scaling};
}

at::Tensor Rotary::operator()(const at::Tensor& x_BTHD, Kernels kernels) const {
  if (options_.width == 0) return x_BTHD;
  const int64_t length = x_BTHD.size(1);
  const at::ScalarType type = x_BTHD.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const bool fits = table_.cos_TR.defined() && table_.cos_TR.size(0) >= length && table_.cos_TR.scalar_type() == type &&
                    table_.cos_TR.device() == x_BTHD.device();
  if (!fits) table_ = ops::rotary_table(options_, length, type, x_BTHD.device());
  return ops::rotate(x_BTHD, table_.cos_TR.narrow(0, 0, length), table_.sin_TR.narrow(0, 0, length), options_.pairing, kernels);
}

}  // namespace quell
