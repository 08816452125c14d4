#include "nn/trunk.h"

namespace quell {

Trunk::Trunk(ParameterList& into, const TransformerConfig& model) {
  for (int64_t layer = 0; layer < model.layers; ++layer) blocks_.emplace_back(into, layer, layer + 1, model);
}

at::Tensor Trunk::operator()(const Forward& forward, at::Tensor x_BTC) const {
  for (size_t i = 0; i < blocks_.size(); ++i) {
    x_BTC = forward.around(static_cast<int64_t>(i) + 1, x_BTC, [&](const at::Tensor& x) { return blocks_[i](forward, x); });
  }
  return x_BTC;
}

}  // namespace quell
