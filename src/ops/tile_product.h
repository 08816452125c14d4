// Products of small matrices that lie in the first caches: the inner loops of flash attention. Nothing is packed here, no
// threads, no blocking for larger caches. Included by *_cpu.cpp only. No torch header.
#pragma once

#include "ops/simd.h"

namespace quell::ops::QUELL_ISA {

// A left factor [M, K] of any strides, in elements: element (m, k) is at[m * row + k * column].
struct Left {
  const float* at;
  int64_t row, column;
};

// R x C registers of sums: C vectors of columns, R rows.
template <int R, int C>
QUELL_INLINE void tile_product(Left a, int64_t depth, const float* b, int64_t b_row, float* c, int64_t c_row, bool add) {
  Floats sum[R][C] = {};
  for (int64_t k = 0; k < depth; ++k, a.at += a.column, b += b_row) {
    Floats right[C];
#pragma GCC unroll 8
    for (int i = 0; i < C; ++i) right[i] = load(b + i * lanes, Full{});
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const Floats left = all(a.at[r * a.row]);
#pragma GCC unroll 8
      for (int i = 0; i < C; ++i) sum[r][i] += left * right[i];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 8
    for (int i = 0; i < C; ++i) {
      float* to = c + r * c_row + i * lanes;
      store(to, add ? load(to, Full{}) + sum[r][i] : sum[r][i], Full{});
    }
  }
}

template <int R, int C>
QUELL_INLINE void panel_product(int64_t rows, Left a, int64_t depth, const float* b, int64_t b_row, float* c, int64_t c_row,
                                bool add) {
  int64_t m = 0;
  for (; m + R <= rows; m += R) tile_product<R, C>({a.at + m * a.row, a.row, a.column}, depth, b, b_row, c + m * c_row, c_row, add);
  for (; m < rows; ++m) tile_product<1, C>({a.at + m * a.row, a.row, a.column}, depth, b, b_row, c + m * c_row, c_row, add);
}

// c [rows, columns] = a [rows, depth] b [depth, columns], or += with `add`. Rows of b and c are contiguous and `columns` is a
// multiple of the lanes. Each element is one chain of fused multiply-adds over k in order, from 0 also with `add`.
inline void product(int64_t rows, int64_t columns, int64_t depth, Left a, const float* b, int64_t b_row, float* c, int64_t c_row,
                    bool add) {
#if defined(__AVX512F__)
  for (; columns >= 4 * lanes; columns -= 4 * lanes, b += 4 * lanes, c += 4 * lanes) {
    panel_product<4, 4>(rows, a, depth, b, b_row, c, c_row, add);
  }
  constexpr int narrow_rows = 8;
#else
  constexpr int narrow_rows = 4;  // 16 registers
#endif
  for (; columns >= 2 * lanes; columns -= 2 * lanes, b += 2 * lanes, c += 2 * lanes) {
    panel_product<narrow_rows, 2>(rows, a, depth, b, b_row, c, c_row, add);
  }
  if (columns > 0) panel_product<8, 1>(rows, a, depth, b, b_row, c, c_row, add);
}

}  // namespace quell::ops::QUELL_ISA
