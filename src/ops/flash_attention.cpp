// See the header. Here: types, strides, threads and what is saved; the arithmetic is in flash_attention_cpu.cpp. B batch, T
// position, H query heads, G key/value heads, D head width, P: D padded to 16.
#include "ops/flash_attention.h"

#include <ATen/Parallel.h>

#include <algorithm>

#include "ops/isa.h"

namespace quell::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t products_a_task = 1 << 18;  // multiply-adds that pay for waking a thread

at::Tensor with_dense_width(const at::Tensor& x) { return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous(); }

HeadRows rows_of(const at::Tensor& x) { return {x.data_ptr(), x.stride(0), x.stride(1), x.stride(2)}; }

// What does not change between the passes.
struct Settings {
  bool causal;
  int64_t window;
  double scale;
};

FlashAttention arguments_of(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& largest,
                            const at::Tensor& sum, const at::Tensor& documents, const Settings& settings) {
  const int64_t length = q.size(1);
  FlashAttention a{};
  a.bf16 = q.scalar_type() == at::kBFloat16;
  a.batch = q.size(0), a.length = length, a.heads = q.size(2), a.group = q.size(2) / k.size(2), a.width = q.size(3);
  a.q = rows_of(q), a.k = rows_of(k), a.v = rows_of(v);
  a.largest = largest.data_ptr<float>(), a.sum = sum.data_ptr<float>();
  a.document = documents.defined() ? documents.const_data_ptr<int32_t>() : nullptr;
  a.causal = settings.causal, a.window = std::min(settings.window, length), a.scale = static_cast<float>(settings.scale);
  return a;
}

// Each thread has its own scratch, from the step's memory.
template <class Kernel>
void run(Kernel kernel, const FlashAttention& a, int64_t tasks, bool back) {
  const int64_t floats = flash_scratch(a, back);
  const at::Tensor scratch = at::empty({at::get_num_threads(), floats}, at::kFloat);
  float* room = scratch.data_ptr<float>();
  const int64_t products_a_row = a.length * a.width, rows = a.batch * a.heads * a.length;
  const int64_t grain = std::max<int64_t>(1, products_a_task * tasks / std::max<int64_t>(1, products_a_row * rows));
  at::parallel_for(0, tasks, grain, [&](int64_t begin, int64_t end) {
    kernel(a, begin, end, room + at::get_thread_num() * floats);
  });
}

// Gradients of the query heads of each group, added up, in the type of what they belong to.
at::Tensor gradient_of(const at::Tensor& x, const at::Tensor& g_BTHP) {
  const int64_t group = g_BTHP.size(2) / x.size(2);
  const at::Tensor cut = g_BTHP.narrow(3, 0, x.size(3));
  return (group == 1 ? cut : cut.unflatten(2, {x.size(2), group}).sum(3)).to(x.scalar_type());
}

struct Flash : torch::autograd::Function<Flash> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& given_q, const at::Tensor& given_k, const at::Tensor& given_v,
                               const std::optional<at::Tensor>& given_documents, const Settings& settings) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    const at::Tensor q = with_dense_width(given_q), k = with_dense_width(given_k), v = with_dense_width(given_v);
    const at::Tensor out = at::empty(q.sizes(), q.options());
    const at::Tensor lse = at::empty({q.size(0), q.size(2), q.size(1)}, q.options().dtype(at::kFloat));
    const at::Tensor largest = at::empty_like(lse), sum = at::empty_like(lse), documents = given_documents.value_or(at::Tensor());
    FlashAttention a = arguments_of(q, k, v, largest, sum, documents, settings);
    a.out = rows_of(out), a.lse = lse.data_ptr<float>();
    run(cpu_kernels().flash.forward, a, flash_tasks(a), false);
    ctx->save_for_backward({q, k, v, largest, sum, documents});
    ctx->saved_data["causal"] = settings.causal;
    ctx->saved_data["window"] = settings.window;
    ctx->saved_data["scale"] = settings.scale;
    ctx->mark_non_differentiable({lse, largest});
    return {out, lse, largest};
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    if (!gradients[0].defined()) return variable_list(5);
    at::AutoGradMode off(false);
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2];
    const at::Tensor d_out = with_dense_width(gradients[0]);
    FlashAttention a = arguments_of(q, k, v, saved[3], saved[4], saved[5],
                                    {ctx->saved_data["causal"].toBool(), ctx->saved_data["window"].toInt(),
                                     ctx->saved_data["scale"].toDouble()});
    const auto gradient = [&] {
      return at::empty({a.batch, a.length, a.heads, flash_padded(a.width)}, q.options().dtype(at::kFloat));
    };
    const at::Tensor dq = gradient(), dk = gradient(), dv = gradient();
    a.d_out = rows_of(d_out), a.dq = rows_of(dq), a.dk = rows_of(dk), a.dv = rows_of(dv);
    run(cpu_kernels().flash.backward, a, a.batch * a.heads, true);
    return {gradient_of(q, dq), gradient_of(k, dk), gradient_of(v, dv), {}, {}};
  }
};

}  // namespace

AttentionResult flash_attention(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& v_BTGD,
                                const AttentionSpec& spec) {
  const at::Tensor documents = spec.documents_BT.defined() ? spec.documents_BT.to(at::kInt).contiguous() : at::Tensor();
  const Settings settings{spec.causal, spec.window.value_or(q_BTHD.size(1)), spec.scale};
  const variable_list made = Flash::apply(q_BTHD, k_BTGD, v_BTGD, std::optional(documents), settings);
  return {made[0], made[1], spec.want_logit_max ? made[2].amax({0, 2}) : at::Tensor()};
}

}  // namespace quell::ops
