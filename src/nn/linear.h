// A linear map with its parameters: y = x W^T + b, W [out, in].
#pragma once

#include <string>

#include "ops/linear.h"
#include "tensors/parameter.h"

namespace quell {

class Linear {
 public:
  Linear() = default;
  Linear(ParameterList& into, const std::string& name, int64_t unit, int64_t in, int64_t out, bool bias, Initial initial)
      : weight_(into.add(name + ".weight", Role::matrix, unit, {out, in}, initial)),
        bias_(bias ? into.add(name + ".bias", Role::bias, unit, {out}, Initial::constant(0)) : nullptr) {}

  at::Tensor operator()(const at::Tensor& x, Kernels kernels) const {
    return ops::linear(x, weight_->compute, bias_ ? bias_->compute : at::Tensor(), kernels);
  }

 private:
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
};

}  // namespace quell
