#include "train/objective.h"

namespace quell {
namespace {

ops::LossOptions options_of(const Model& model, const LossConfig& loss) {
  ops::LossOptions options{.kind = loss.kind, .label_smoothing = loss.label_smoothing, .z = loss.z, .max_z = loss.max_z};
  if (const auto* decoder = std::get_if<Decoder>(&model)) options.softcap = decoder->config().output.softcap;
  options.top5 = std::holds_alternative<Vit>(model);
  return options;
}

}  // namespace

at::Tensor logits_of(const Decoder& model, const Forward& forward, const Batch& batch) {
  const at::Tensor x_BTC = model(forward, batch.inputs_BT);
  return model.logits(x_BTC.reshape({-1, x_BTC.size(2)}), forward.kernels);
}

at::Tensor logits_of(const Vit& model, const Forward& forward, const Batch& batch) { return model(forward, batch.images_BCHW); }

Objective::Objective(const Model& model, const LossConfig& loss) : model_(model), options_(options_of(model, loss)) {}

ops::LossSums Objective::operator()(const Forward& forward, const Batch& batch) const {
  const at::Tensor logits_NV = std::visit([&](const auto& model) { return logits_of(model, forward, batch); }, model_);
  ops::LossOptions options = options_;
  options.kernels = forward.kernels;
  return ops::output_loss(logits_NV, batch.targets_BT.reshape(-1), options);
}

}  // namespace quell
