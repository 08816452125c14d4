// The block's MLP: down(act(up(x))), or down(act(gate(x)) * up(x)) for gated kinds. x_BTC -> [B, T, C].
#pragma once

#include <string>

#include "nn/transformer_config.h"
#include "nn/forward.h"
#include "nn/linear.h"

namespace quell {

class Mlp {
 public:
  Mlp() = default;
  Mlp(ParameterList& into, const std::string& name, int64_t unit, const TransformerConfig& model);
  at::Tensor operator()(const Forward& forward, const at::Tensor& x_BTC) const;

 private:
  MlpKind kind_ = MlpKind::gelu;
  Linear gate_, up_, down_;
};

}  // namespace quell
