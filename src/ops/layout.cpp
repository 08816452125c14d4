// See the header.
#include "ops/layout.h"

#include <optional>

namespace quell::ops {
namespace {

struct Level {
  int64_t size, stride;
};

// Dimensions [0, end) as few levels as possible, outermost first; those of size 1 vanish.
std::vector<Level> collapsed(const at::Tensor& x, int64_t end) {
  std::vector<Level> levels;
  for (int64_t d = 0; d < end; ++d) {
    if (x.size(d) == 1) continue;
    if (!levels.empty() && levels.back().stride == x.size(d) * x.stride(d)) {
      levels.back() = {levels.back().size * x.size(d), x.stride(d)};
    } else {
      levels.push_back({x.size(d), x.stride(d)});
    }
  }
  return levels;
}

std::optional<Rows> try_rows(const at::Tensor& x, int64_t inner) {
  if (x.size(-1) > 1 && x.stride(-1) != 1) return std::nullopt;
  std::vector<Level> levels = collapsed(x, x.dim() - (inner > 0 ? 2 : 1));
  if (inner > 0) levels.push_back({inner, x.stride(-2)});
  if (levels.size() > 2) return std::nullopt;
  Rows rows{x.numel() / x.size(-1)};
  if (!levels.empty()) {
    rows.inner_count = levels.size() == 2 || inner > 0 ? levels.back().size : 1;
    rows.inner_stride = levels.back().stride;
    rows.outer_stride = levels.front().stride;
  }
  return rows;
}

}  // namespace

Rows rows_of(at::Tensor& x, int64_t inner) {
  if (x.numel() == 0) return {};
  if (const auto rows = try_rows(x, inner)) return *rows;
  x = x.contiguous();
  return try_rows(x, inner).value();
}

Rows dense_rows(int64_t count, int64_t width, int64_t inner) { return {count, inner, inner * width, width}; }

}  // namespace quell::ops
