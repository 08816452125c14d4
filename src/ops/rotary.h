// Rotary position embedding (Su et al. 2021): pairs of a head's values are turned by position * frequency. Angles, their sines
// and cosines are computed in fp64 and stored in fp32 (fp64 for fp64); the rotation itself is done in fp32 for bf16 input.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/options.h"

namespace quell::ops {

struct RotaryTable {
  at::Tensor cos_TR, sin_TR;  // R = width / 2
};
// Positions 0 .. length-1. `type` fp32 or fp64.
RotaryTable rotary_table(const RopeOptions& options, int64_t length, at::ScalarType type, at::Device device);

// x_BTHD with the first 2R of its D values rotated; the rest passes through. halves: y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin
// with x1 the first and x2 the second half of the rotated part; interleaved: the same with x1 the even and x2 the odd elements.
// T may be less than the table's rows. A gradient reaches x only.
at::Tensor rotate(const at::Tensor& x_BTHD, const at::Tensor& cos_TR, const at::Tensor& sin_TR, RopePairing pairing,
                  Kernels kernels = Kernels::automatic);

}  // namespace quell::ops
