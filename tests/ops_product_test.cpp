// Products by our kernel and by LibTorch's: every instruction set, shapes on both sides of the choice, views, threads. M rows, K
// width in, N width out.
#include <catch2/catch.hpp>

#include "ops/isa.h"
#include "ops/product.h"
#include "support.h"

using namespace quell;
using quell::testing::as_accurate_as;
using quell::testing::random_tensor;

namespace {

struct Shape {
  int64_t M, K, N;
};
// The last two are left to LibTorch: a width that is no multiple of 16, and a factor that is too large for the cache.
const Shape shapes[] = {{300, 128, 64}, {301, 40, 112}, {257, 300, 48}, {1, 16, 16}, {130, 33, 63}, {96, 512, 1024}};

double doubles(const at::Tensor& x) { return x.sum(at::kDouble).item<double>(); }

}  // namespace

TEST_CASE("the three products of a linear map are as accurate as LibTorch's", "[unit]") {
  for (const Shape& s : shapes) {
    INFO(s.M << " x " << s.K << " x " << s.N);
    const at::Tensor x = random_tensor({s.M, s.K}, 1), weight = random_tensor({s.N, s.K}, 2), g = random_tensor({s.M, s.N}, 3);
    const at::Tensor bias = random_tensor({s.N}, 4), before = random_tensor({s.N, s.K}, 5);
    const auto wide = [](const at::Tensor& t) { return t.to(at::kDouble); };
    CHECK(as_accurate_as(ops::product_turned(x, weight, bias), at::linear(x, weight, bias), at::linear(wide(x), wide(weight), wide(bias))));
    CHECK(as_accurate_as(ops::product_turned(x, weight, {}), at::linear(x, weight), at::linear(wide(x), wide(weight))));
    CHECK(as_accurate_as(ops::product(g, weight), at::mm(g, weight), at::mm(wide(g), wide(weight))));
    at::Tensor sum = before.clone();
    ops::add_outer_products(sum, g, x);
    CHECK(as_accurate_as(sum, before.addmm(g.t(), x), wide(before).addmm(wide(g).t(), wide(x))));
  }
}

TEST_CASE("factors and sums may be views, and what lies beside a view is left alone", "[unit]") {
  const at::Tensor x = random_tensor({70, 100}, 1).narrow(1, 3, 64), g = random_tensor({70, 200}, 2).narrow(1, 50, 48);
  const at::Tensor weight = random_tensor({60, 80}, 3).narrow(0, 7, 48).narrow(1, 5, 64);
  CHECK(at::equal(ops::product_turned(x, weight, {}), ops::product_turned(x.contiguous(), weight.contiguous(), {})));
  CHECK(at::equal(ops::product(g, weight), ops::product(g.contiguous(), weight.contiguous())));
  const at::Tensor whole = at::zeros({50, 80});
  at::Tensor part = whole.narrow(0, 1, 48).narrow(1, 8, 64), dense = at::zeros({48, 64});
  ops::add_outer_products(part, g, x);
  ops::add_outer_products(dense, g, x);
  CHECK(at::equal(part, dense));
  CHECK(doubles(whole.abs()) == doubles(part.abs()));
}

TEST_CASE("products of fp64 and bf16 factors are LibTorch's", "[unit]") {
  for (const auto type : {at::kDouble, at::kBFloat16}) {
    const at::Tensor x = random_tensor({33, 32}, 1, type), weight = random_tensor({16, 32}, 2, type), g = random_tensor({33, 16}, 3, type);
    CHECK(at::equal(ops::product_turned(x, weight, {}), at::linear(x, weight)));
    CHECK(at::equal(ops::product(g, weight), at::mm(g, weight)));
  }
}

TEST_CASE("products have the same bits for any number of threads", "[unit]") {
  const at::Tensor x = random_tensor({515, 128}, 1), weight = random_tensor({144, 128}, 2);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = ops::product_turned(x, weight, {});
  at::set_num_threads(3);
  const at::Tensor three = ops::product_turned(x, weight, {});
  at::set_num_threads(before);
  CHECK(at::equal(one, three));
}

TEST_CASE("every instruction set multiplies as accurately as LibTorch, in any split of the rows", "[unit]") {
  const int64_t M = 45, K = 270, N = 112;
  const at::Tensor a = random_tensor({K, M}, 1), b = random_tensor({K, N}, 2), start = random_tensor({M, N}, 3);
  const at::Tensor slow = start.addmm(a.t(), b), truth = start.to(at::kDouble).addmm(a.t().to(at::kDouble), b.to(at::kDouble));
  for (const ops::CpuKernels& set : ops::available_cpu_kernels()) {
    INFO(set.name);
    const at::Tensor c = start.clone();
    const ops::Product p{M, N, K, a.const_data_ptr<float>(), 1, M, b.const_data_ptr<float>(), N, c.data_ptr<float>(), N,
                         c.data_ptr<float>(), N};
    set.product.product(p, 0, 3);
    set.product.product(p, 3, M);
    CHECK(as_accurate_as(c, slow, truth));
    const at::Tensor turned = at::zeros({K + 1, M}), whole = random_tensor({M, K}, 4);
    set.product.transpose(whole.const_data_ptr<float>(), K, K, turned.data_ptr<float>(), M, 0, 17);
    set.product.transpose(whole.const_data_ptr<float>(), K, K, turned.data_ptr<float>(), M, 17, M);
    CHECK(at::equal(turned.narrow(0, 0, K), whole.t()));
    CHECK(doubles(turned[-1].abs()) == 0);
  }
}
