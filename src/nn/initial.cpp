#include "nn/initial.h"

#include <cmath>

namespace quell {
namespace {

constexpr double fixed_deviation = 0.02;

Initial drawn(const TransformerConfig& config, int64_t fan_in, double factor) {
  const double fan = 1 / std::sqrt(static_cast<double>(fan_in));
  switch (config.init.kind) {
    case InitKind::fan_in: return Initial::normal(factor * fan);
    case InitKind::truncated: return Initial::truncated_normal(factor * fan);
    case InitKind::gpt2: return Initial::normal(factor * fixed_deviation);
    case InitKind::vit: return Initial::truncated_normal(factor * fixed_deviation);
  }
  return {};
}

}  // namespace

Initial initial_matrix(const TransformerConfig& config, int64_t fan_in) { return drawn(config, fan_in, 1); }

Initial initial_patch(const TransformerConfig& config, int64_t fan_in) {
  const double deviation = 1 / std::sqrt(static_cast<double>(fan_in));
  const bool cut = config.init.kind == InitKind::truncated || config.init.kind == InitKind::vit;
  return cut ? Initial::truncated_normal(deviation) : Initial::normal(deviation);
}

Initial initial_residual(const TransformerConfig& config, int64_t fan_in) {
  if (config.init.residual == InitResidual::zero) return Initial::constant(0);
  const bool scaled = config.init.residual == InitResidual::scaled;
  return drawn(config, fan_in, scaled ? 1 / std::sqrt(2.0 * static_cast<double>(config.layers)) : 1);
}

Initial initial_embedding(const TransformerConfig& config) { return drawn(config, config.width, 1); }

Initial initial_output(const TransformerConfig& config) {
  if (config.init.head == InitHead::as_matrix) return drawn(config, config.width, 1);
  return Initial::constant(0);
}

}  // namespace quell
