// The interface of the CPU norm kernels (norm_cpu.cpp, one set an instruction set). Raw pointers only; norm.cpp owns shapes,
// types and threads.
#pragma once

#include <cstdint>

#include "ops/rows.h"

namespace quell::ops {

enum class NormStatistics { centred, plain, l2 };
// Where values are rounded to the storage type: at the end; after the normalisation too; after the product too; everywhere.
enum class NormRounding { once, normalised, product, everywhere };

struct NormForward {
  const void* x;
  Rows x_rows;
  int64_t width;
  const float* factor;     // null, or [width] for all rows, or [inner_count, width]
  const float* bias;       // like factor
  int64_t factor_stride;   // 0 or width
  NormStatistics statistics;
  NormRounding rounding;
  float eps;
  void* y;                 // dense
  float* size;             // [count]: the r of norm.h; negative where l2's eps decided it
  float* mean;             // [count], centred only
};

struct NormBackward {
  const void* x;
  const void* dy;
  Rows x_rows, dy_rows;    // one inner_count
  int64_t width;
  const float* factor;
  int64_t factor_stride;
  NormStatistics statistics;
  const float* size;
  const float* mean;
  void* dx;                // dense
};

// `bf16` says what x, y, dy and dx hold, otherwise fp32. Rows [begin, end).
struct NormKernels {
  void (*forward)(const NormForward&, bool bf16, int64_t begin, int64_t end);
  // dfactor and dbias: null, or sums shaped like factor to be added to. Few rows a call: a long fp32 sum loses digits.
  void (*backward)(const NormBackward&, bool bf16, int64_t begin, int64_t end, float* dfactor, float* dbias);
  // sum += part; part = 0.
  void (*fold)(float* part, double* sum, int64_t count);
};

}  // namespace quell::ops
