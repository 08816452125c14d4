// Strided rows: how kernels see a tensor [..., W] without copying it. Leading dimensions are collapsed into two levels, so that
// a view [B, T, H, D] of a wider matrix is seen as it lies. No torch header here.
#pragma once

#include <cstdint>

namespace quell::ops {

// Row r = outer * inner_count + inner starts at outer * outer_stride + inner * inner_stride elements; its W elements are
// contiguous.
struct Rows {
  int64_t count = 0;
  int64_t inner_count = 1;
  int64_t outer_stride = 0;
  int64_t inner_stride = 0;
};

}  // namespace quell::ops
