// See the header. Here: shapes, types and threads; the arithmetic is in activation_cpu.cpp.
#include "ops/activation.h"

#include <algorithm>

#include "base/error.h"
#include "ops/choose.h"
#include "ops/isa.h"
#include "ops/layout.h"
#include "ops/reference.h"
#include "tensors/fill.h"

namespace quell::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t elements_a_task = 16384;

template <class Kernel>
void run(Kernel kernel, const ActivationRows& rows) {
  const int64_t grain = std::max<int64_t>(1, elements_a_task / std::max<int64_t>(1, rows.width));
  at::parallel_for(0, rows.gate_rows.count, grain, [&](int64_t begin, int64_t end) { kernel(rows, begin, end); });
}

struct Activation : torch::autograd::Function<Activation> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& first, const std::optional<at::Tensor>& second,
                            MlpKind kind) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    at::Tensor gate = first, up = second.value_or(at::Tensor());
    at::Tensor y = at::empty(gate.sizes(), gate.options());
    ActivationRows rows = described(kind, gate, up);
    rows.out = y.mutable_data_ptr();
    run(cpu_kernels().activation.forward, rows);
    ctx->save_for_backward({gate, up});
    ctx->saved_data["kind"] = static_cast<int64_t>(kind);
    return y;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    if (!gradients[0].defined()) return {{}, {}, {}};
    at::AutoGradMode off(false);
    const auto saved = ctx->get_saved_variables();
    at::Tensor gate = saved[0], up = saved[1], dy = gradients[0];
    ActivationRows rows = described(static_cast<MlpKind>(ctx->saved_data["kind"].toInt()), gate, up);
    rows.dy_rows = rows_of(dy);
    rows.dy = dy.const_data_ptr();
    at::Tensor d_gate = at::empty(gate.sizes(), gate.options()), d_up;
    rows.out = d_gate.mutable_data_ptr();
    if (up.defined()) {
      d_up = at::empty(up.sizes(), up.options());
      rows.d_up = d_up.mutable_data_ptr();
    }
    run(cpu_kernels().activation.backward, rows);
    return {d_gate, d_up, {}};
  }

  static ActivationRows described(MlpKind kind, at::Tensor& gate, at::Tensor& up) {
    ActivationRows rows{};
    rows.kind = kind;
    rows.bf16 = gate.scalar_type() == at::kBFloat16;
    rows.width = gate.size(-1);
    rows.gate_rows = rows_of(gate);
    rows.gate = gate.const_data_ptr();
    if (up.defined()) {
      rows.up_rows = rows_of(up);
      rows.up = up.const_data_ptr();
    }
    return rows;
  }
};

}  // namespace

at::Tensor activate(const at::Tensor& x, MlpKind kind, Kernels kernels) {
  require(!is_gated(kind), "activate: a gated kind takes two inputs");
  require(x.dim() >= 1, "activate: x has no dimension");
  if (runs_twin(kernels, x, "activate")) return reference::activate(x, kind);
  return Activation::apply(x, std::optional<at::Tensor>(), kind);
}

at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, MlpKind kind, Kernels kernels) {
  require(is_gated(kind), "gated: this kind takes one input");
  require(gate.dim() >= 1 && gate.sizes() == up.sizes() && gate.scalar_type() == up.scalar_type(),
          "gated: gate and up differ in shape or type");
  if (runs_twin(kernels, gate, "gated")) return reference::gated(gate, up, kind);
  return Activation::apply(gate, std::optional(up), kind);
}

at::Tensor dropout(const at::Tensor& x, double probability, uint64_t key) {
  return probability == 0 ? x : x * dropout_mask(x, probability, key);
}

}  // namespace quell::ops
