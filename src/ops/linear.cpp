// Products with parameters as autograd functions of our own, whose backward adds weight gradients straight into the bound
// views. Differentiable once. Shapes: C width in, N rows or width out, V vocabulary.
#include "ops/linear.h"

#include "base/error.h"
#include "ops/bound_gradient.h"
#include "ops/choose.h"
#include "ops/product.h"

namespace quell::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t line_bytes = 64;

at::Tensor rows_of(const at::Tensor& x) { return x.dim() == 2 ? x : x.reshape({-1, x.size(-1)}); }

// gradient of a weight [N, C] from g [rows, N] and x [rows, C].
at::Tensor weight_gradient(const at::Tensor& weight, const at::Tensor& g, const at::Tensor& x) {
  at::Tensor bound = bound_gradient(weight);
  if (!bound.defined()) return at::mm(g.t(), x);
  add_outer_products(bound, g, x);
  return {};
}

struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& given_bias) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    const at::Tensor bias = given_bias.value_or(at::Tensor());
    ctx->save_for_backward({x, weight, bias});
    auto sizes = x.sizes().vec();
    sizes.back() = weight.size(0);
    return product_turned(rows_of(x), weight, bias).view(sizes);
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const at::Tensor& g_out = gradients[0];
    if (!g_out.defined()) return {{}, {}, {}};
    at::AutoGradMode off(false);
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &bias = saved[2];
    const at::Tensor g = rows_of(g_out);
    at::Tensor dx, dw, db;
    if (bias.defined() && ctx->needs_input_grad(2)) db = deliver_gradient(bias, g.sum(0, false, bias.scalar_type()));
    if (ctx->needs_input_grad(0)) dx = product(g, weight).view(x.sizes());
    if (ctx->needs_input_grad(1)) dw = weight_gradient(weight, g, rows_of(x));
    return {dx, dw, db};
  }
};

struct OutputLogits : torch::autograd::Function<OutputLogits> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x_NC, const at::Tensor& weight_VC) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({x_NC, weight_VC});
    const int64_t vocabulary = weight_VC.size(0), step = line_bytes / x_NC.element_size();
    const at::Tensor padded = at::empty({x_NC.size(0), (vocabulary + step - 1) / step * step}, x_NC.options());
    at::Tensor logits_NV = padded.narrow(1, 0, vocabulary);
    at::mm_out(logits_NV, x_NC, weight_VC.t());
    return logits_NV;
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    const at::Tensor& g_NV = gradients[0];
    if (!g_NV.defined()) return {{}, {}};
    at::AutoGradMode off(false);
    const auto saved = ctx->get_saved_variables();
    at::Tensor dx, dw;
    if (ctx->needs_input_grad(0)) dx = product(g_NV, saved[1]);
    if (ctx->needs_input_grad(1)) dw = weight_gradient(saved[1], g_NV, saved[0]);
    return {dx, dw};
  }
};

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Kernels kernels) {
  require(weight.dim() == 2 && x.dim() >= 1 && x.size(-1) == weight.size(1), "linear: x [..., C] and weight [N, C] do not fit");
  require(x.scalar_type() == weight.scalar_type(), "linear: x and weight differ in type");
  require(!bias.defined() || (bias.dim() == 1 && bias.size(0) == weight.size(0)), "linear: bias is not [N]");
  if (runs_twin(kernels, x.scalar_type(), "linear")) {
    return at::linear(x, weight, bias.defined() ? bias.to(x.scalar_type()) : bias);
  }
  return Linear::apply(x, weight, std::optional(bias));
}

at::Tensor output_logits(const at::Tensor& x_NC, const at::Tensor& weight_VC, Kernels kernels) {
  require(x_NC.dim() == 2 && weight_VC.dim() == 2 && x_NC.size(1) == weight_VC.size(1), "output_logits: shapes do not fit");
  require(x_NC.scalar_type() == weight_VC.scalar_type(), "output_logits: x and weight differ in type");
  if (runs_twin(kernels, x_NC.scalar_type(), "output_logits")) return at::linear(x_NC, weight_VC);
  return OutputLogits::apply(x_NC, weight_VC);
}

}  // namespace quell::ops
