// The blocks of a model, one after the other, each through the seam `Forward::around`. Block i is unit i + 1 of memory.
#pragma once

#include <vector>

#include "nn/block.h"

namespace quell {

class Trunk {
 public:
  Trunk() = default;
  Trunk(ParameterList& into, const TransformerConfig& model);
  at::Tensor operator()(const Forward& forward, at::Tensor x_BTC) const;
  const std::vector<Block>& blocks() const { return blocks_; }

 private:
  std::vector<Block> blocks_;
};

}  // namespace quell
