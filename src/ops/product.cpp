// See the header. Here: when our kernel is taken, and threads. M rows, K width in, N width out.
#include "ops/product.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

#include "ops/isa.h"

namespace quell::ops {
namespace {

constexpr int64_t floats_that_fit = 1 << 17;  // of the weight: half of a common second cache of 1 MiB
constexpr int64_t products_a_task = 1 << 18;  // multiply-adds that pay for waking a thread
constexpr int64_t tile_rows = 8;              // tasks are of whole groups of rows

bool dense_rows(const at::Tensor& x) { return x.stride(1) == 1 && x.stride(0) >= x.size(1); }

// `kept` is what stays in the cache while the other two stream by: the weight, or its gradient.
bool takes(const at::Tensor& left, const at::Tensor& right, const at::Tensor& kept, int64_t columns) {
  return left.scalar_type() == at::kFloat && left.is_cpu() && columns > 0 && columns % 16 == 0 && left.numel() > 0 && dense_rows(left) &&
         dense_rows(right) && kept.numel() <= floats_that_fit;
}

void run(const Product& p) {
  const int64_t tiles = (p.rows + tile_rows - 1) / tile_rows, products_a_tile = tile_rows * p.columns * p.depth;
  at::parallel_for(0, tiles, std::max<int64_t>(1, products_a_task / products_a_tile), [&](int64_t begin, int64_t end) {
    cpu_kernels().product.product(p, begin * tile_rows, std::min(end * tile_rows, p.rows));
  });
}

// [N, K] -> [K, N]
at::Tensor turned(const at::Tensor& weight) {
  const at::Tensor to = at::empty({weight.size(1), weight.size(0)}, weight.options());
  const float* from = weight.const_data_ptr<float>();
  float* out = to.data_ptr<float>();
  const int64_t strips = (weight.size(0) + 15) / 16;
  at::parallel_for(0, strips, std::max<int64_t>(1, 1024 / weight.size(1)), [&](int64_t begin, int64_t end) {
    cpu_kernels().product.transpose(from, weight.stride(0), weight.size(1), out, weight.size(0), begin * 16,
                                    std::min(end * 16, weight.size(0)));
  });
  return to;
}

}  // namespace

at::Tensor product_turned(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const int64_t N = weight.size(0);
  if (!takes(x, weight, weight, N) || (bias.defined() && bias.scalar_type() != at::kFloat)) {
    return at::linear(x, weight, bias.defined() ? bias.to(x.scalar_type()) : bias);
  }
  const at::Tensor right = turned(weight), y = at::empty({x.size(0), N}, x.options());
  run({x.size(0), N, x.size(1), x.const_data_ptr<float>(), x.stride(0), 1, right.const_data_ptr<float>(), N, y.data_ptr<float>(), N,
       bias.defined() ? bias.contiguous().const_data_ptr<float>() : nullptr, 0});
  return y;
}

at::Tensor product(const at::Tensor& g, const at::Tensor& weight) {
  const int64_t K = weight.size(1);
  if (!takes(g, weight, weight, K)) return at::mm(g, weight);
  const at::Tensor dx = at::empty({g.size(0), K}, g.options());
  run({g.size(0), K, g.size(1), g.const_data_ptr<float>(), g.stride(0), 1, weight.const_data_ptr<float>(), weight.stride(0),
       dx.data_ptr<float>(), K, nullptr, 0});
  return dx;
}

void add_outer_products(at::Tensor& sum, const at::Tensor& g, const at::Tensor& x) {
  if (sum.scalar_type() != x.scalar_type()) {
    // The product accumulates in fp32 and is rounded to bf16 once; LibTorch has no CPU product from bf16 into fp32.
    sum.add_(at::mm(g.t(), x));
  } else if (takes(g, x, sum, x.size(1)) && dense_rows(sum)) {
    float* to = sum.data_ptr<float>();
    run({g.size(1), x.size(1), g.size(0), g.const_data_ptr<float>(), 1, g.stride(0), x.const_data_ptr<float>(), x.stride(0), to,
         sum.stride(0), to, sum.stride(0)});
  } else {
    sum.addmm_(g.t(), x);
  }
}

}  // namespace quell::ops
