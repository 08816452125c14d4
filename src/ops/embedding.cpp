// Rows of a table by index. The backward adds rows into the gradient in fp32 and in the order of the tokens, so equal tokens are
// summed in one order for any number of threads. Shapes: C width, N tokens, V vocabulary.
#include "base/error.h"
#include "ops/bound_gradient.h"
#include "ops/choose.h"
#include "ops/linear.h"

namespace quell::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// sum_VC[token] += g_NC[n] for n = 0, 1, ...; every thread takes the tokens of its own residue class.
template <class T>
void add_rows(at::Tensor& sum_VC, const int64_t* tokens, const at::Tensor& g_NC) {
  const int64_t count = g_NC.size(0), width = g_NC.size(1), stride = sum_VC.stride(0), parts = at::get_num_threads();
  float* sum = sum_VC.data_ptr<float>();
  const T* g = g_NC.const_data_ptr<T>();
  at::parallel_for(0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; n < count; ++n) {
      const int64_t part = tokens[n] % parts;
      if (part < begin || part >= end) continue;
      float* to = sum + tokens[n] * stride;
      const T* from = g + n * width;
      for (int64_t c = 0; c < width; ++c) to[c] += static_cast<float>(from[c]);
    }
  });
}

struct Embedding : torch::autograd::Function<Embedding> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& weight_VC, const at::Tensor& tokens) {
    at::AutoDispatchBelowADInplaceOrView below;
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({weight_VC, tokens});
    std::vector<int64_t> shape = tokens.sizes().vec();
    shape.push_back(weight_VC.size(1));
    return at::index_select(weight_VC, 0, tokens.reshape(-1)).view(shape);
  }

  static variable_list backward(AutogradContext* ctx, variable_list gradients) {
    if (!gradients[0].defined()) return {{}, {}};
    at::AutoGradMode off(false);
    const auto saved = ctx->get_saved_variables();
    const at::Tensor& weight_VC = saved[0];
    const at::Tensor tokens_N = saved[1].reshape(-1).contiguous();
    const at::Tensor g_NC = gradients[0].reshape({-1, weight_VC.size(1)}).contiguous();
    const at::Tensor bound = bound_gradient(weight_VC);
    const bool direct = bound.defined() && bound.scalar_type() == at::kFloat && bound.stride(1) == 1;
    at::Tensor sum_VC = direct ? bound : at::zeros(weight_VC.sizes(), weight_VC.options().dtype(at::kFloat));
    if (!weight_VC.is_cpu()) {
      sum_VC.index_add_(0, tokens_N, g_NC.to(at::kFloat));
    } else if (g_NC.scalar_type() == at::kBFloat16) {
      add_rows<at::BFloat16>(sum_VC, tokens_N.const_data_ptr<int64_t>(), g_NC);
    } else {
      add_rows<float>(sum_VC, tokens_N.const_data_ptr<int64_t>(), g_NC);
    }
    return {direct ? at::Tensor() : deliver_gradient(weight_VC, sum_VC), {}};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& weight_VC, const at::Tensor& tokens, Kernels kernels) {
  require(weight_VC.dim() == 2 && tokens.scalar_type() == at::kLong, "embedding: a table [V, C] and int64 tokens are needed");
  if (runs_twin(kernels, weight_VC.scalar_type(), "embedding")) return at::embedding(weight_VC, tokens);
  return Embedding::apply(weight_VC, tokens);
}

}  // namespace quell::ops
