// Matrix products whose right factor fits the second cache: it is read from there as it lies. At such sizes a library's packing of
// both factors costs a tenth of the product.
#include "ops/product_cpu.h"

#include "ops/tile_product.h"

namespace quell::ops::QUELL_ISA {
namespace {

constexpr int64_t deep = 128, wide = 64;  // such a piece of b stays in the first cache while rows are multiplied by it
constexpr int64_t high = 192;             // rows of c that stay in the second cache while pieces of b pass

void rows_product(const Product& p, int64_t begin, int64_t end) {
  for (int64_t k = 0; k < p.depth; k += deep) {
    const int64_t depth = p.depth - k < deep ? p.depth - k : deep;
    const Start start = k > 0 ? Start{p.c, p.c_row} : Start{p.start, p.start_row};
    for (int64_t n = 0; n < p.columns; n += wide) {
      const int64_t columns = p.columns - n < wide ? p.columns - n : wide;
      small_product(end - begin, columns, depth, {p.a + begin * p.a_row + k * p.a_column, p.a_row, p.a_column}, p.b + k * p.b_row + n,
              p.b_row, p.c + begin * p.c_row + n, p.c_row,
              {start.at == nullptr ? nullptr : start.at + begin * start.row + n, start.row});
    }
  }
}

void product(const Product& p, int64_t begin, int64_t end) {
  for (int64_t first = begin; first < end; first += high) rows_product(p, first, end - first < high ? end : first + high);
}

void transpose(const float* from, int64_t from_row, int64_t columns, float* to, int64_t to_row, int64_t begin, int64_t end) {
  constexpr int64_t strip = 16;
  for (int64_t first = begin; first < end; first += strip) {
    const int64_t count = end - first < strip ? end - first : strip;
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < count; ++i) to[j * to_row + first + i] = from[(first + i) * from_row + j];
    }
  }
}

}  // namespace

extern const ProductKernels product_kernels{product, transpose};

}  // namespace quell::ops::QUELL_ISA
