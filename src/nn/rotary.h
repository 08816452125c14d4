// The rotary embedding of one layer, with its table of sines and cosines kept from call to call.
#pragma once

#include "nn/transformer_config.h"
#include "ops/rotary.h"

namespace quell {

class Rotary {
 public:
  Rotary() = default;  // the identity
  Rotary(const PositionConfig& config, int64_t head_width);

  // x_BTHD at positions 0 .. T-1. One forward pass at a time: the table grows where T does.
  at::Tensor operator()(const at::Tensor& x_BTHD, Kernels kernels) const;

 private:
  RopeOptions options_{.width = 0};
  mutable ops::RotaryTable table_;
};

}  // namespace quell
