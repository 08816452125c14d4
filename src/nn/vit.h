// A vision transformer: patches through one linear map, positions, blocks, pooling, and a linear head. The parts are named, drawn
// and saved as "patch.weight", "position.weight", "class_token", "registers", "blocks.<i>....", "norm.weight", "pool....",
// "head.weight". Tokens stand in the order class token, registers, patches (by row); positions are added to patches only.
// Shapes: B batch, P patches, T tokens, C width, K classes.
#pragma once

#include <vector>

#include "nn/config.h"
#include "nn/forward.h"
#include "nn/pool.h"
#include "nn/trunk.h"
#include "tensors/parameter.h"

namespace quell {

class Vit {
 public:
  // Declares the parameters. `config.classes` is resolved. The list must outlive the model.
  Vit(ParameterList& into, const VitConfig& config);

  // images [B, channels, image, image] (fp32 or fp64) -> logits [B, K].
  at::Tensor operator()(const Forward& forward, const at::Tensor& images) const;

  const VitConfig& config() const { return config_; }
  const std::vector<Block>& blocks() const { return trunk_.blocks(); }

 private:
  at::Tensor embed(const Forward& forward, const at::Tensor& images) const;

  VitConfig config_;
  Linear patch_;
  at::Tensor sincos_PC_;
  Parameter* position_ = nullptr;
  Parameter* class_token_ = nullptr;
  Parameter* registers_ = nullptr;
  Trunk trunk_;
  Norm norm_;
  Pool pool_;
  Parameter* head_ = nullptr;
  Parameter* head_bias_ = nullptr;
};

// Images cut into patches: [B, channels, S, S] -> [B, P, channels * patch * patch], a patch's values by channel, row, column.
at::Tensor patches_of(const at::Tensor& images, int64_t patch);

// Fixed positions of a grid x grid image: [P, C], a quarter of the width each for sin and cos of the column and of the row, at
// frequencies 10000^(-i / (C / 4 - 1)) (Beyer, Zhai and Kolesnikov 2022).
at::Tensor sincos_positions(int64_t grid, int64_t width);

// Learned positions of one square grid as those of another: [P, C] -> [patches, C], bicubic, averaging where the grid shrinks (as
// timm does). Undefined where either number is no square.
at::Tensor resample_positions(const at::Tensor& position_PC, int64_t patches);

}  // namespace quell
