// From tensors to what kernels take (ops/rows.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/rows.h"

namespace quell::ops {

// The rows of x [..., W]; x is replaced by a contiguous copy where its memory is not two levels of strided rows. With
// `inner` > 0 the rows' inner level is the last but one dimension, of that size.
Rows rows_of(at::Tensor& x, int64_t inner = 0);

// Contiguous rows of a tensor with as many rows.
Rows dense_rows(int64_t count, int64_t width, int64_t inner = 1);

}  // namespace quell::ops
