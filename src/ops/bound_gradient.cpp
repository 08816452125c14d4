// See the header. A saved leaf is unpacked as itself, so its gradient is reached through it.
#include "ops/bound_gradient.h"

namespace quell::ops {

at::Tensor bound_gradient(const at::Tensor& parameter) {
  return parameter.is_leaf() && parameter.requires_grad() ? parameter.grad() : at::Tensor();
}

at::Tensor deliver_gradient(const at::Tensor& parameter, const at::Tensor& gradient) {
  at::Tensor bound = bound_gradient(parameter);
  if (!bound.defined()) return gradient.to(parameter.scalar_type());
  bound.add_(gradient);
  return {};
}

}  // namespace quell::ops
