// Products of small matrices that lie in the first caches: the inner loops of flash attention and of ops/product. Nothing is
// packed here, no threads, no blocking for larger caches. Included by *_cpu.cpp only. No torch header.
#pragma once

#include <type_traits>

#include "ops/simd.h"

namespace quell::ops::QUELL_ISA {

// A left factor [M, K] of any strides, in elements: element (m, k) is at[m * row + k * column].
struct Left {
  const float* at;
  int64_t row, column;
};

// What a product is added to, or none: element (m, n) is at[m * row + n]. A row of 0 adds one row, a bias, to all.
struct Start {
  const float* at;
  int64_t row;
};

// R x C registers of sums: C vectors of columns, R rows.
template <int R, int C>
QUELL_INLINE void tile_product(Left a, int64_t depth, const float* b, int64_t b_row, float* c, int64_t c_row, Start start) {
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
      if (start.at != nullptr) sum[r][i] += load(start.at + r * start.row + i * lanes, Full{});
      store(c + r * c_row + i * lanes, sum[r][i], Full{});
    }
  }
}

template <int R, int C>
QUELL_INLINE void panel_product(int64_t rows, Left a, int64_t depth, const float* b, int64_t b_row, float* c, int64_t c_row,
                                Start start) {
  const auto tiles = [&]<int M>(std::integral_constant<int, M>, int64_t m) {
    const Start of_tile{start.at == nullptr ? nullptr : start.at + m * start.row, start.row};
    tile_product<M, C>({a.at + m * a.row, a.row, a.column}, depth, b, b_row, c + m * c_row, c_row, of_tile);
  };
  int64_t m = 0;
  for (; m + R <= rows; m += R) tiles(std::integral_constant<int, R>{}, m);
  for (; m + 2 <= rows; m += 2) tiles(std::integral_constant<int, 2>{}, m);
  if (m < rows) tiles(std::integral_constant<int, 1>{}, m);
}

// c [rows, columns] = start + a [rows, depth] b [depth, columns]. Rows of b and c are contiguous and `columns` is a multiple of the
// lanes. Each element is one chain of multiply-adds (fused where there are any) over k in order, to which start is added last.
inline void small_product(int64_t rows, int64_t columns, int64_t depth, Left a, const float* b, int64_t b_row, float* c, int64_t c_row,
                    Start start) {
  const auto next = [&](int64_t width) {
    columns -= width, b += width, c += width;
    if (start.at != nullptr) start.at += width;
  };
#if defined(__AVX512F__)
  for (; columns >= 4 * lanes; next(4 * lanes)) panel_product<6, 4>(rows, a, depth, b, b_row, c, c_row, start);
  constexpr int narrow_rows = 8;
#else
  constexpr int narrow_rows = 4;  // 16 registers
#endif
  for (; columns >= 2 * lanes; next(2 * lanes)) panel_product<narrow_rows, 2>(rows, a, depth, b, b_row, c, c_row, start);
  if (columns > 0) panel_product<8, 1>(rows, a, depth, b, b_row, c, c_row, start);
}

}  // namespace quell::ops::QUELL_ISA
