// A norm over the last dimension with its parameters: of the residual stream, of one head, or of a whole projection.
#pragma once

#include <string>

#include "nn/transformer_config.h"
#include "ops/norm.h"
#include "tensors/parameter.h"

namespace quell {

class Norm {
 public:
  Norm() = default;  // the identity
  // Residual stream: weight [width].
  Norm(ParameterList& into, const std::string& name, int64_t unit, const NormConfig& config, int64_t width);
  // QK-norm of q (or k): the weight's shape follows options.weight; `shared` over a projection is one [D] for each of its heads.
  Norm(ParameterList& into, const std::string& name, int64_t unit, const QkNormOptions& options, int64_t heads, int64_t head_width);

  explicit operator bool() const { return spec_.kind != NormKind::none; }
  at::Tensor operator()(const at::Tensor& x, Kernels kernels) const;

 private:
  void declare(ParameterList& into, const std::string& name, int64_t unit, Role role, const std::vector<int64_t>& shape,
               bool weight, bool bias);
  at::Tensor over_row(const Parameter* parameter) const;

  ops::NormSpec spec_{.kind = NormKind::none};
  int64_t repeats_ = 1;  // how often a shared weight stands in a row
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
};

}  // namespace quell
