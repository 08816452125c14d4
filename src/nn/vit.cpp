#include "nn/vit.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "nn/initial.h"
#include "ops/linear.h"

namespace quell {

at::Tensor patches_of(const at::Tensor& images, int64_t patch) {
  require(images.dim() == 4 && images.size(2) % patch == 0 && images.size(3) % patch == 0, "patches: the patch does not divide the image");
  const int64_t batch = images.size(0), channels = images.size(1), rows = images.size(2) / patch, columns = images.size(3) / patch;
  return images.view({batch, channels, rows, patch, columns, patch})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({batch, rows * columns, channels * patch * patch});
}

at::Tensor sincos_positions(int64_t grid, int64_t width) {
  const int64_t quarter = width / 4;
  const auto options = at::TensorOptions().dtype(at::kDouble);
  const at::Tensor place = at::arange(grid, options);
  const at::Tensor step = at::arange(quarter, options) / static_cast<double>(std::max<int64_t>(1, quarter - 1));
  const at::Tensor angle = place.unsqueeze(1) * (step * -std::log(10000.0)).exp();  // [grid, quarter]
  const at::Tensor wave = at::cat({angle.sin(), angle.cos()}, 1);
  const at::Tensor column = wave.unsqueeze(0).expand({grid, grid, 2 * quarter}), row = wave.unsqueeze(1).expand({grid, grid, 2 * quarter});
  return at::cat({column, row}, 2).reshape({grid * grid, width});
}

at::Tensor resample_positions(const at::Tensor& position_PC, int64_t patches) {
  const auto side = [](int64_t count) { return static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(count)))); };
  const int64_t from = side(position_PC.size(0)), to = side(patches), width = position_PC.size(1);
  if (from * from != position_PC.size(0) || to * to != patches) return {};
  const at::Tensor image = position_PC.to(at::kFloat).view({1, from, from, width}).permute({0, 3, 1, 2});
  const at::Tensor resampled = at::_upsample_bicubic2d_aa(image, {to, to}, /*align_corners=*/false);
  return resampled.permute({0, 2, 3, 1}).reshape({patches, width}).to(position_PC.scalar_type());
}

Vit::Vit(ParameterList& into, const VitConfig& config) : config_(config) {
  const int64_t head_unit = config.layers + 1, classes = config.classes.value();
  patch_ = Linear(into, "patch", 0, config.patch_values(), config.width, true, initial_patch(config, config.patch_values()));
  if (config.position.kind == PositionKind::sincos) sincos_PC_ = sincos_positions(config.grid(), config.width);
  if (config.position.kind == PositionKind::learned) {
    position_ = into.add("position.weight", Role::embedding, 0, {config.patches(), config.width}, initial_embedding(config));
  }
  if (config.class_token) class_token_ = into.add("class_token", Role::embedding, 0, {config.width}, initial_embedding(config));
  if (config.registers > 0) {
    registers_ = into.add("registers", Role::embedding, 0, {config.registers, config.width}, initial_embedding(config));
  }
  trunk_ = Trunk(into, config);
  norm_ = Norm(into, "norm", head_unit, config.norm, config.width);
  pool_ = Pool(into, head_unit, config);
  head_ = into.add("head.weight", Role::output, head_unit, {classes, config.width}, initial_output(config));
  head_bias_ = into.add("head.bias", Role::bias, head_unit, {classes}, Initial::constant(0));
}

at::Tensor Vit::embed(const Forward& forward, const at::Tensor& images) const {
  const at::ScalarType type = head_->compute.scalar_type();
  at::Tensor x_BTC = patch_(patches_of(images, config_.patch).to(type), forward.kernels);
  if (position_ != nullptr) x_BTC = x_BTC + position_->compute;
  if (sincos_PC_.defined()) x_BTC = x_BTC + sincos_PC_.to(x_BTC.options());
  std::vector<at::Tensor> tokens;
  const int64_t batch = images.size(0), width = config_.width;
  if (class_token_ != nullptr) tokens.push_back(class_token_->compute.expand({batch, 1, width}));
  if (registers_ != nullptr) tokens.push_back(registers_->compute.expand({batch, config_.registers, width}));
  if (!tokens.empty()) {
    tokens.push_back(x_BTC);
    x_BTC = at::cat(tokens, 1);
  }
  return dropout(forward, x_BTC, config_.dropout, places::embedding);
}

at::Tensor Vit::operator()(const Forward& forward, const at::Tensor& images) const {
  const Kernels kernels = forward.kernels;
  at::Tensor x = trunk_(forward, embed(forward, images));
  const bool before = config_.pool.norm == PoolNorm::before;
  if (before) x = norm_(x, kernels);
  at::Tensor pooled_BC = pool_(forward, x);
  if (!before) pooled_BC = norm_(pooled_BC, kernels);
  return ops::linear(pooled_BC, head_->compute, head_bias_->compute, kernels);
}

}  // namespace quell
