// The kernels of flash attention, called as they are: every instruction set, any split into tasks, blocks of every kind (whole,
// cut by the mask, cut by the end of the sequence). B batch, T position, H query heads, G key/value heads, D head width, P: D
// padded to 16.
#include <catch2/catch.hpp>

#include "ops/flash_attention.h"
#include "ops/isa.h"
#include "ops/reference.h"
#include "support.h"

using namespace quell;
using namespace quell::ops;
using quell::testing::as_accurate_as;
using quell::testing::gradients;
using quell::testing::random_tensor;

namespace {

struct Case {
  int64_t T, H, G, D;
  bool causal;
  int64_t window;
  bool documents;
};

struct Inputs {
  at::Tensor q, k, v, cotangent, documents_BT;
  AttentionSpec spec;
  explicit Inputs(const Case& c)
      : q(random_tensor({2, c.T, c.H, c.D}, 1)), k(random_tensor({2, c.T, c.G, c.D}, 2)), v(random_tensor({2, c.T, c.G, c.D}, 3)),
        cotangent(random_tensor({2, c.T, c.H, c.D}, 4)) {
    spec.causal = c.causal;
    spec.window = c.window;
    spec.scale = 1 / std::sqrt(static_cast<double>(c.D));
    // Of 40 positions, shifted by 15 in the second sample.
    const at::Tensor position = at::arange(c.T, at::kLong);
    documents_BT = at::stack({position.floor_divide(40), (position + 15).floor_divide(40)});
    if (c.documents) spec.documents_BT = documents_BT;
  }
};

// out, lse, dq, dk, dv of the twin.
std::vector<at::Tensor> twin(const Inputs& in, at::ScalarType type) {
  const auto leaf = [&](const at::Tensor& x) { return x.to(type, false, /*copy=*/true).requires_grad_(true); };
  const at::Tensor q = leaf(in.q), k = leaf(in.k), v = leaf(in.v);
  const AttentionResult r = reference::attention(q, k, v, in.spec);
  const auto g = gradients(r.out_BTHD, in.cotangent.to(type), {q, k, v});
  return {r.out_BTHD, r.lse_BHT, g[0], g[1], g[2]};
}

// The same of one set of kernels, in tasks [0, 1), [1, ...). Gradients are not zero before.
std::vector<at::Tensor> kernels(const FlashKernels& flash, const Inputs& in) {
  const int64_t T = in.q.size(1), H = in.q.size(2), G = in.k.size(2), D = in.q.size(3), P = flash_padded(D);
  const auto rows = [](const at::Tensor& x) { return HeadRows{x.data_ptr(), x.stride(0), x.stride(1), x.stride(2)}; };
  const at::Tensor out = at::empty_like(in.q), lse = at::empty({2, H, T}), largest = at::empty_like(lse), sum = at::empty_like(lse);
  const at::Tensor documents = in.documents_BT.to(at::kInt);
  const at::Tensor dq = at::full({2, T, H, P}, 7.0f), dk = dq.clone(), dv = dq.clone();
  FlashAttention a{.bf16 = false, .batch = 2, .length = T, .heads = H, .group = H / G, .width = D};
  a.q = rows(in.q), a.k = rows(in.k), a.v = rows(in.v), a.out = rows(out), a.d_out = rows(in.cotangent);
  a.lse = lse.data_ptr<float>(), a.largest = largest.data_ptr<float>(), a.sum = sum.data_ptr<float>();
  a.document = in.spec.documents_BT.defined() ? documents.data_ptr<int32_t>() : nullptr;
  a.causal = in.spec.causal, a.window = std::min(*in.spec.window, T), a.scale = static_cast<float>(in.spec.scale);
  a.dq = rows(dq), a.dk = rows(dk), a.dv = rows(dv);
  const at::Tensor scratch = at::full({flash_scratch(a, true)}, NAN);  // what is read was written
  flash.forward(a, 0, 1, scratch.data_ptr<float>());
  flash.forward(a, 1, flash_tasks(a), scratch.data_ptr<float>());
  scratch.fill_(NAN);
  flash.backward(a, 0, 1, scratch.data_ptr<float>());
  flash.backward(a, 1, 2 * H, scratch.data_ptr<float>());
  const auto of_heads = [&](const at::Tensor& g, int64_t heads) { return g.narrow(3, 0, D).unflatten(2, {heads, H / heads}).sum(3); };
  return {out, lse, of_heads(dq, H), of_heads(dk, G), of_heads(dv, G)};
}

}  // namespace

TEST_CASE("every instruction set attends as accurately as the twin, whatever the mask leaves of a block", "[unit]") {
  const Case cases[] = {
      {64, 3, 3, 32, true, 64, false},   // one whole block
      {63, 4, 2, 64, false, 63, false},  // cut by the end
      {65, 4, 1, 48, true, 65, false},   // one position in the last block
      {200, 2, 2, 16, true, 70, false},  // a window across blocks; the first block is out of sight of the last
      {200, 2, 1, 20, false, 17, false},
      {150, 2, 1, 33, true, 33, true},
      {130, 3, 1, 128, true, 130, true},
  };
  for (const Case& c : cases) {
    const Inputs in(c);
    const auto slow = twin(in, at::kFloat), truth = twin(in, at::kDouble);
    for (const CpuKernels& set : available_cpu_kernels()) {
      const auto fast = kernels(set.flash, in);
      const char* const names[] = {"out", "lse", "dq", "dk", "dv"};
      for (size_t i = 0; i < fast.size(); ++i) {
        INFO(set.name << ", T = " << c.T << ", D = " << c.D << ": " << names[i]);
        CHECK(as_accurate_as(fast[i], slow[i], truth[i]));
      }
    }
  }
}

TEST_CASE("flash attention gives the same bits for any number of threads", "[unit]") {
  const Inputs in({200, 4, 2, 40, true, 200, false});
  const auto everything = [&](int threads) {
    at::set_num_threads(threads);
    const auto leaf = [](const at::Tensor& x) { return x.clone().requires_grad_(true); };
    const at::Tensor q = leaf(in.q), k = leaf(in.k), v = leaf(in.v);
    const AttentionResult r = flash_attention(q, k, v, in.spec);
    auto all = gradients(r.out_BTHD, in.cotangent, {q, k, v});
    all.insert(all.end(), {r.out_BTHD, r.lse_BHT});
    return all;
  };
  const int before = at::get_num_threads();
  const auto one = everything(1), three = everything(3);
  at::set_num_threads(before);
  for (size_t i = 0; i < one.size(); ++i) CHECK(at::equal(one[i], three[i]));
}
