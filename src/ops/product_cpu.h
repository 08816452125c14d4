// The interface of the CPU kernels of matrix products (product_cpu.cpp). Raw pointers only; product.cpp owns shapes and threads.
#pragma once

#include <cstdint>

namespace quell::ops {

// c [rows, columns] = start + a [rows, depth] b [depth, columns], fp32; strides in elements. Rows of b, c and start are contiguous.
struct Product {
  int64_t rows, columns, depth;  // columns: a multiple of 16
  const float* a;                // element (m, k) is a[m * a_row + k * a_column]
  int64_t a_row, a_column;
  const float* b;
  int64_t b_row;
  float* c;
  int64_t c_row;
  const float* start;            // null, c itself, or a bias with a row of 0
  int64_t start_row;
};

struct ProductKernels {
  // Rows [begin, end) of c.
  void (*product)(const Product&, int64_t begin, int64_t end);
  // to [columns, rows] from rows of `from`: rows [begin, end) of it.
  void (*transpose)(const float* from, int64_t from_row, int64_t columns, float* to, int64_t to_row, int64_t begin, int64_t end);
};

}  // namespace quell::ops
