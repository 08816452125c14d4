// How a backward hands over a parameter's gradient: straight into the tensor that is bound as its gradient (a view of the
// gradient arena), in place and in that tensor's type, or returned the usual way where none is bound.
#pragma once

#include <ATen/core/Tensor.h>

namespace quell::ops {

// The tensor to add into, or undefined. Only leaves have one.
at::Tensor bound_gradient(const at::Tensor& parameter);

// Adds `gradient` (any float type) into the bound one and returns undefined, or returns it in the parameter's type.
at::Tensor deliver_gradient(const at::Tensor& parameter, const at::Tensor& gradient);

}  // namespace quell::ops
