// ops::linear, output_logits and embedding: against LibTorch's own, and where their gradients go.
#include <ATen/Parallel.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "ops/linear.h"
#include "support.h"

using namespace quell;
using namespace quell::testing;

namespace {

Function linear_of(bool bias, Kernels kernels) {
  return [=](const std::vector<at::Tensor>& in) { return ops::linear(in[0], in[1], bias ? in[2] : at::Tensor(), kernels); };
}

// A leaf of `values` whose gradient is a view of the returned arena, as a Parameter's is.
struct Bound {
  at::Tensor leaf, arena;
  Bound(const at::Tensor& values, at::ScalarType gradient_type) : leaf(values.clone().requires_grad_(true)) {
    arena = at::zeros({values.numel() + 32}, gradient_type);
    leaf.set_grad_dtype(gradient_type);
    leaf.mutable_grad() = view();
  }
  at::Tensor view() const { return arena.narrow(0, 16, leaf.numel()).view(leaf.sizes()); }
  bool in_place() const { return leaf.grad().data_ptr() == view().data_ptr() && leaf.grad().is_alias_of(arena); }
};

}  // namespace

TEST_CASE("linear is as accurate as LibTorch's for every type, with and without bias, on dense and strided input", "[unit]") {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const std::vector<at::Tensor> inputs{random_tensor({4, 50, 72}, 1, type), random_tensor({200, 72}, 2, type),
                                         random_tensor({72}, 3, type), random_tensor({50, 4, 72}, 4, type).transpose(0, 1),
                                         random_tensor({200, 100}, 5, type).narrow(1, 20, 72)};
    const at::Tensor weight = random_tensor({61, 72}, 6, type);
    for (const auto& x : inputs) {
      INFO(type << " " << x.sizes() << " strides " << x.strides());
      check_against_twin(linear_of(false, Kernels::fused), linear_of(false, Kernels::reference), {x, weight});
      for (const auto bias_type : {at::kFloat, type}) {
        check_against_twin(linear_of(true, Kernels::fused), linear_of(true, Kernels::reference),
                           {x, weight, random_tensor({61}, 7, bias_type)});
      }
    }
  }
}

TEST_CASE("linear's gradients agree with finite differences", "[unit]") {
  const std::vector<at::Tensor> inputs{random_tensor({2, 3, 4}, 8, at::kDouble), random_tensor({5, 4}, 9, at::kDouble),
                                       random_tensor({5}, 10, at::kDouble)};
  CHECK(gradient_error(linear_of(true, Kernels::automatic), inputs) < 1e-7);
}

TEST_CASE("linear adds into bound gradients in place, over two backward passes, in their type", "[unit]") {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const auto kernels : {Kernels::fused, Kernels::reference}) {
      INFO(type << " " << name_of(kernels));
      const at::Tensor x = random_tensor({128, 40}, 11, type).requires_grad_(true),
                       cotangent = random_tensor({128, 24}, 12, type);
      Bound weight(random_tensor({24, 40}, 13, type), at::kFloat), bias(random_tensor({24}, 14), at::kFloat);
      for (int pass = 0; pass < 2; ++pass) ops::linear(x, weight.leaf, bias.leaf, kernels).backward(cotangent);
      CHECK(weight.in_place());
      CHECK(bias.in_place());
      CHECK(x.grad().scalar_type() == type);

      const at::Tensor free = weight.leaf.detach().requires_grad_(true), free_bias = bias.leaf.detach().requires_grad_(true);
      const auto once = gradients(ops::linear(x, free, free_bias, kernels), cotangent, {free, free_bias});
      const at::Tensor twice = 2 * once[0].to(at::kFloat), twice_bias = 2 * once[1];
      CHECK(largest(weight.leaf.grad() - twice) <= 4 * ulp(largest(twice), at::kFloat));
      CHECK(largest(bias.leaf.grad() - twice_bias) <= 4 * ulp(largest(twice_bias), at::kFloat));
    }
  }
}

TEST_CASE("a bound gradient is in its view before the graph hears of one, so there is no second copy", "[unit]") {
  const at::Tensor tokens = at::arange(50).remainder(24), x = random_tensor({50, 40}, 32);
  const std::vector<std::function<at::Tensor(const at::Tensor&)>> products{
      [&](const at::Tensor& weight) { return ops::linear(x, weight); },
      [&](const at::Tensor& weight) { return ops::output_logits(x, weight); },
      [&](const at::Tensor& weight) { return ops::embedding(weight, tokens); }};
  for (const auto& product : products) {
    Bound weight(random_tensor({24, 40}, 33), at::kFloat);
    const at::Tensor y = product(weight.leaf);
    CHECK_FALSE(gradients(y, random_tensor(y.sizes(), 34), {weight.leaf})[0].defined());
    CHECK(largest(weight.view()) > 0);
  }
}

TEST_CASE("a gradient asked for x alone leaves bound gradients untouched", "[unit]") {
  const at::Tensor x = random_tensor({8, 40}, 15).requires_grad_(true);
  Bound weight(random_tensor({24, 40}, 16), at::kFloat), bias(random_tensor({24}, 17), at::kFloat);
  gradients(ops::linear(x, weight.leaf, bias.leaf), random_tensor({8, 24}, 18), {x});
  CHECK(largest(weight.leaf.grad()) == 0);
  CHECK(largest(bias.leaf.grad()) == 0);
}

TEST_CASE("frozen weights and inputs without gradient get none", "[unit]") {
  const at::Tensor x = random_tensor({8, 40}, 19), weight = random_tensor({24, 40}, 20);
  CHECK_FALSE(ops::linear(x, weight).requires_grad());
  const at::Tensor xs = x.clone().requires_grad_(true), ws = weight.clone().requires_grad_(true);
  ops::linear(xs, weight).sum().backward();
  CHECK_FALSE(weight.grad().defined());
  ops::linear(x, ws).sum().backward();
  CHECK(ws.grad().defined());
}

TEST_CASE("output logits are linear's, in rows that start at multiples of 64 bytes", "[unit]") {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const int64_t vocabulary : {63, 64, 211}) {
      const at::Tensor x = random_tensor({100, 48}, 21, type), weight = random_tensor({vocabulary, 48}, 22, type);
      const auto logits = [](Kernels kernels) {
        return [=](const std::vector<at::Tensor>& in) { return ops::output_logits(in[0], in[1], kernels); };
      };
      check_against_twin(logits(Kernels::fused), logits(Kernels::reference), {x, weight});
      const at::Tensor y = ops::output_logits(x, weight);
      CHECK(y.stride(1) == 1);
      CHECK(y.stride(0) * y.element_size() % 64 == 0);

      // A gradient in such rows, as the loss gives it, and a bound gradient.
      Bound bound(weight, at::kFloat);
      const at::Tensor g = random_tensor({100, y.stride(0)}, 23, type).narrow(1, 0, vocabulary);
      for (int pass = 0; pass < 2; ++pass) ops::output_logits(x, bound.leaf).backward(g);
      CHECK(bound.in_place());
      const at::Tensor expected = 2 * at::mm(g.t().to(at::kDouble), x.to(at::kDouble));
      CHECK(as_accurate_as(bound.leaf.grad().to(type), expected.to(type), expected));
    }
  }
}

TEST_CASE("embeddings are rows of the table, and their gradients are summed by token in fp32", "[unit]") {
  const at::Tensor tokens = (uniform_tensor({16, 100}, 24, 0, 1).square() * 50).to(at::kLong);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor table = random_tensor({50, 33}, 25, type);
    const auto rows = [&](Kernels kernels) {
      return [=](const std::vector<at::Tensor>& in) { return ops::embedding(in[0], tokens, kernels); };
    };
    check_against_twin(rows(Kernels::fused), rows(Kernels::reference), {table});
    CHECK(at::equal(ops::embedding(table, tokens), at::embedding(table, tokens)));

    Bound bound(table, at::kFloat);
    const at::Tensor g = random_tensor({16, 100, 33}, 26, type);
    for (int pass = 0; pass < 2; ++pass) ops::embedding(bound.leaf, tokens).backward(g);
    CHECK(bound.in_place());
    at::Tensor expected = at::zeros({50, 33}, at::kDouble);
    expected.index_add_(0, tokens.flatten(), 2 * g.flatten(0, 1).to(at::kDouble));
    const at::Tensor twin = at::zeros({50, 33}).index_add_(0, tokens.flatten(), 2 * g.flatten(0, 1).to(at::kFloat));
    CHECK(as_accurate_as(bound.leaf.grad(), twin, expected));
  }
}

TEST_CASE("an embedding's gradient does not depend on the number of threads", "[unit]") {
  const at::Tensor tokens = (uniform_tensor({4000}, 27, 0, 1) * 20).to(at::kLong), g = random_tensor({4000, 16}, 28);
  const at::Tensor table = random_tensor({20, 16}, 29).requires_grad_(true);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor one = gradients(ops::embedding(table, tokens), g, {table})[0];
  at::set_num_threads(2);
  const at::Tensor two = gradients(ops::embedding(table, tokens), g, {table})[0];
  at::set_num_threads(before);
  CHECK(at::equal(one, two));
}

TEST_CASE("one weight used twice sums both gradients into its view", "[unit]") {
  const at::Tensor tokens = at::arange(12).remainder(7);
  Bound table(random_tensor({7, 8}, 30), at::kFloat);
  const at::Tensor logits = ops::output_logits(ops::embedding(table.leaf, tokens), table.leaf);  // tied
  const at::Tensor g = random_tensor(logits.sizes(), 31);
  logits.backward(g);
  CHECK(table.in_place());
  const at::Tensor free = table.leaf.detach().to(at::kDouble).requires_grad_(true);
  const at::Tensor truth = gradients(at::linear(at::embedding(free, tokens), free), g.to(at::kDouble), {free})[0];
  const at::Tensor plain = table.leaf.detach().clone().requires_grad_(true);
  const at::Tensor twin = gradients(at::linear(at::embedding(plain, tokens), plain), g, {plain})[0];
  CHECK(as_accurate_as(table.leaf.grad(), twin, truth));
}

TEST_CASE("products whose shapes or types do not fit are bugs", "[unit]") {
  const at::Tensor x = at::ones({2, 4}), weight = at::ones({3, 4});
  CHECK_THROWS_AS(ops::linear(x, at::ones({3, 5})), Bug);
  CHECK_THROWS_AS(ops::linear(x, weight.to(at::kBFloat16)), Bug);
  CHECK_THROWS_AS(ops::linear(x, weight, at::ones({2})), Bug);
  CHECK_THROWS_AS(ops::output_logits(at::ones({2, 3, 4}), weight), Bug);
  CHECK_THROWS_AS(ops::embedding(weight, at::ones({2}, at::kInt)), Bug);
}
