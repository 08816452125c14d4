#include "nn/mlp.h"

#include "nn/initial.h"
#include "ops/activation.h"

namespace quell {

Mlp::Mlp(ParameterList& into, const std::string& name, int64_t unit, const TransformerConfig& model) : kind_(model.mlp.kind) {
  const int64_t hidden = model.mlp_width();
  const Initial matrix = initial_matrix(model, model.width);
  if (is_gated(kind_)) gate_ = Linear(into, name + ".gate", unit, model.width, hidden, model.mlp.bias, matrix);
  up_ = Linear(into, name + ".up", unit, model.width, hidden, model.mlp.bias, matrix);
  down_ = Linear(into, name + ".down", unit, hidden, model.width, model.mlp.bias, initial_residual(model, hidden));
}

at::Tensor Mlp::operator()(const Forward& forward, const at::Tensor& x_BTC) const {
  const Kernels kernels = forward.kernels;
  if (is_gated(kind_)) return down_(ops::gated(gate_(x_BTC, kernels), up_(x_BTC, kernels), kind_, kernels), kernels);
  return down_(ops::activate(up_(x_BTC, kernels), kind_, kernels), kernels);
}

}  // namespace quell
