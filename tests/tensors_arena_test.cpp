// Layout of the flat buffers, and how gradients reach them.
#include <catch2/catch.hpp>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "base/error.h"
#include "tensors/arena.h"

using namespace quell;

namespace {

bool starts_at_64_bytes(const at::Tensor& t) { return reinterpret_cast<uintptr_t>(t.data_ptr()) % 64 == 0; }

// Two units declared out of order, with sizes that are no multiples of anything.
struct Model {
  ParameterList list;
  Parameter* head = list.add("head", Role::output, 7, {5, 3}, Initial::constant(0));
  Parameter* embedding = list.add("embedding", Role::embedding, 0, {5, 3}, Initial::constant(0));
  Parameter* matrix = list.add("matrix", Role::matrix, 1, {7, 3}, Initial::constant(0));
  Parameter* norm = list.add("norm", Role::norm_weight, 1, {3}, Initial::constant(1));
  Parameter* scale = list.add("scale", Role::scale, 1, {}, Initial::constant(1));
};

// An operation whose gradient is finer than bf16, as ops::embedding's is.
struct Fine : torch::autograd::Function<Fine> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& weight) {
    context->saved_data["sizes"] = weight.sizes();
    return weight.sum();
  }
  using Tensors = torch::autograd::variable_list;
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors&) {
    return {at::full(context->saved_data["sizes"].toIntVector(), 1 + 0x1p-20f)};
  }
};

}  // namespace

TEST_CASE("units lie in order of first use, padded to world x 64 bytes, views aligned", "[unit]") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16, Precision::fp64);
  const int64_t world = GENERATE(1, 2, 3, 8);
  Model model;
  Arena arena(model.list, {precision, world, at::kCPU});
  REQUIRE(arena.units().size() == 3);
  int64_t end = 0;
  for (const Range& unit : arena.units()) {
    REQUIRE(unit.begin == end);
    REQUIRE(unit.size() > 0);
    REQUIRE(unit.size() * arena.values().element_size() % (world * 64) == 0);
    end = unit.end;
  }
  REQUIRE(end == arena.trainable());
  REQUIRE(arena.values().numel() == end);
  REQUIRE(arena.range(*model.embedding).begin == 0);
  REQUIRE(arena.range(*model.matrix).begin == arena.units()[1].begin);
  REQUIRE(arena.range(*model.head).begin == arena.units()[2].begin);
  for (const Parameter& p : model.list) {
    REQUIRE(arena.range(p).size() == p.numel());
    REQUIRE(p.value.sizes() == at::IntArrayRef(p.shape));
    REQUIRE(starts_at_64_bytes(p.value));
    REQUIRE(starts_at_64_bytes(p.compute));
    REQUIRE(starts_at_64_bytes(p.compute.grad()));
  }
}

TEST_CASE("ranges of different parameters never overlap", "[unit]") {
  Model model;
  model.norm->frozen = true;
  Arena arena(model.list, {Precision::fp32, 2, at::kCPU});
  for (const Parameter& a : model.list) {
    for (const Parameter& b : model.list) {
      if (&a == &b) continue;
      REQUIRE((arena.range(a).end <= arena.range(b).begin || arena.range(b).end <= arena.range(a).begin));
    }
  }
}

TEST_CASE("values are views of the flat buffer", "[unit]") {
  Model model;
  Arena arena(model.list, {});
  at::NoGradGuard no_gradient;
  model.matrix->value.fill_(2);
  REQUIRE(arena.values().sum().item<double>() == 42);
  arena.values().fill_(3);
  REQUIRE(model.scale->value.item<double>() == 3);
}

TEST_CASE("backward adds into the gradient arena in place and clearing keeps the views", "[unit]") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16, Precision::fp64);
  Model model;
  Arena arena(model.list, {precision, 1, at::kCPU});
  {
    at::NoGradGuard no_gradient;
    arena.values().fill_(2);
    arena.refresh_compute();
  }
  const auto backward = [&] {
    const at::Tensor w = model.matrix->compute;
    (w * w).sum().backward();
    (model.norm->compute * 3).sum().backward();
  };
  void* const address = model.matrix->compute.grad().data_ptr();
  backward();
  backward();
  REQUIRE(model.matrix->compute.grad().data_ptr() == address);
  REQUIRE(model.matrix->compute.grad().scalar_type() == arena.master_type());
  const auto in_arena = [&](const Parameter* p) { return arena.view(arena.gradients(), *p); };
  REQUIRE(at::equal(in_arena(model.matrix), at::full({7, 3}, 8, arena.gradients().options())));
  REQUIRE(at::equal(in_arena(model.norm), at::full({3}, 6, arena.gradients().options())));
  REQUIRE(arena.gradients().sum().item<double>() == 21 * 8 + 3 * 6);

  arena.clear_gradients();
  REQUIRE(arena.gradients().abs().max().item<double>() == 0);
  backward();
  REQUIRE(model.matrix->compute.grad().data_ptr() == address);
  REQUIRE(at::equal(in_arena(model.matrix), at::full({7, 3}, 4, arena.gradients().options())));
}

TEST_CASE("under bf16 matrices, embeddings and outputs compute with rounded copies, the rest with masters", "[unit]") {
  Model model;
  Arena arena(model.list, {Precision::bf16, 1, at::kCPU});
  {
    at::NoGradGuard no_gradient;
    arena.values().fill_(1.0 / 3);
  }
  REQUIRE(model.matrix->compute.sum().item<double>() == 0);
  arena.refresh_compute();
  for (Parameter* p : {model.matrix, model.embedding, model.head}) {
    REQUIRE(p->compute.scalar_type() == at::kBFloat16);
    REQUIRE(at::equal(p->compute, p->value.to(at::kBFloat16)));
    REQUIRE(p->value.scalar_type() == at::kFloat);
    REQUIRE(p->compute.is_leaf());
  }
  for (Parameter* p : {model.norm, model.scale}) REQUIRE(p->compute.is_same(p->value));
}

TEST_CASE("small bf16 gradients are summed in fp32", "[unit]") {
  Model model;
  Arena arena(model.list, {Precision::bf16, 1, at::kCPU});
  // In bf16 1 + 2^-9 is 1: a bf16 accumulator would lose every addition after the first.
  model.matrix->compute.sum().backward();
  for (int i = 0; i < 8; ++i) (model.matrix->compute * 0x1p-9).sum().backward();
  REQUIRE(model.matrix->compute.grad().max().item<float>() == 1 + 8 * 0x1p-9f);

  arena.clear_gradients();
  Fine::apply(model.matrix->compute).backward();
  REQUIRE(model.matrix->compute.grad().max().item<float>() == 1 + 0x1p-20f);
}

TEST_CASE("frozen parameters follow the trainable ones and have no gradient and no moment", "[unit]") {
  const auto precision = GENERATE(Precision::fp32, Precision::bf16);
  Model model;
  REQUIRE(model.list.freeze({"embedding", "norm"}).empty());
  Arena arena(model.list, {precision, 2, at::kCPU});
  REQUIRE(arena.units().size() == 2);  // the embedding's unit holds nothing trainable
  for (Parameter* p : {model.embedding, model.norm}) {
    REQUIRE(arena.range(*p).begin >= arena.trainable());
    REQUIRE_FALSE(p->compute.requires_grad());
    REQUIRE_FALSE(p->value.requires_grad());
    REQUIRE_FALSE(p->compute.grad().defined());
    REQUIRE_THROWS_AS(arena.view(arena.gradients(), *p), Bug);
    REQUIRE(starts_at_64_bytes(p->value));
  }
  REQUIRE(arena.gradients().numel() == arena.trainable());
}

TEST_CASE("a parameter of another list is a bug", "[unit]") {
  Model model, other;
  Arena arena(model.list, {});
  REQUIRE_THROWS_AS(arena.range(*other.matrix), Bug);
}
