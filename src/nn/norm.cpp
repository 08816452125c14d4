#include "nn/norm.h"

namespace quell {

Norm::Norm(ParameterList& into, const std::string& name, int64_t unit, const NormConfig& config, int64_t width)
    : spec_{.kind = config.kind, .zero_centered = config.zero_centered, .eps = config.eps, .cast = config.cast} {
  declare(into, name, unit, Role::norm_weight, {width}, config.weight, config.bias);
}

Norm::Norm(ParameterList& into, const std::string& name, int64_t unit, const QkNormOptions& options, int64_t heads,
           int64_t head_width)
    : spec_{.kind = options.kind,
            .center = options.center,
            .zero_centered = options.zero_centered,
            .eps = options.eps,
            .cast = options.cast} {
  if (options.kind == NormKind::none) return;
  std::vector<int64_t> shape{head_width};
  if (options.weight == NormWeight::per_head) shape = {heads, head_width};
  if (options.axis == NormAxis::projection) {
    if (options.weight == NormWeight::shared) repeats_ = heads;
    else shape = {heads * head_width};
  }
  declare(into, name, unit, Role::qk_norm_weight, shape, options.weight != NormWeight::none, options.bias);
}

void Norm::declare(ParameterList& into, const std::string& name, int64_t unit, Role role, const std::vector<int64_t>& shape,
                   bool weight, bool bias) {
  const double start = spec_.zero_centered ? 0 : 1;
  if (weight) weight_ = into.add(name + ".weight", role, unit, shape, Initial::constant(start));
  if (bias) bias_ = into.add(name + ".bias", Role::bias, unit, shape, Initial::constant(0));
}

at::Tensor Norm::over_row(const Parameter* parameter) const {
  if (parameter == nullptr) return {};
  return repeats_ == 1 ? parameter->compute : parameter->compute.repeat({repeats_});
}

at::Tensor Norm::operator()(const at::Tensor& x, Kernels kernels) const {
  if (!*this) return x;
  ops::NormSpec spec = spec_;
  spec.kernels = kernels;
  return ops::norm(x, over_row(weight_), over_row(bias_), spec);
}

}  // namespace quell
