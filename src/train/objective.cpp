#include "train/objective.h"

#include "base/random.h"

namespace quell {
namespace {

ops::LossOptions options_of(const Model& model, const LossConfig& loss) {
  ops::LossOptions options{.kind = loss.kind, .label_smoothing = loss.label_smoothing, .z = loss.z, .max_z = loss.max_z};
  if (const auto* decoder = std::get_if<Decoder>(&model)) options.softcap = decoder->config().output.softcap;
  return options;
}

at::Tensor logits_of(const Decoder& model, const Forward& forward, const Batch& batch) {
  const at::Tensor x_BTC = model(forward, batch.inputs_BT);
  return model.logits(x_BTC.reshape({-1, x_BTC.size(2)}), forward.kernels);
}

at::Tensor logits_of(const Vit& model, const Forward& forward, const Batch& batch) { return model(forward, batch.images_BCHW); }

}  // namespace

Objective::Objective(const Model& model, const LossConfig& loss) : model_(model), options_(options_of(model, loss)) {}

at::Tensor Objective::logits(const Forward& forward, const Batch& batch) const {
  return std::visit([&](const auto& model) { return logits_of(model, forward, batch); }, model_);
}

ops::LossSums Objective::loss(const at::Tensor& logits_NV, const Forward& forward, const Batch& batch) const {
  ops::LossOptions options = options_;
  options.kernels = forward.kernels;
  options.top5 = !forward.training && std::holds_alternative<Vit>(model_);  // reported of evaluations only
  if (batch.answers_BT.defined()) options.exact_rows = batch.targets_BT.size(1);
  return ops::output_loss(logits_NV, batch.targets_BT.reshape(-1), options);
}

ops::LossSums Objective::operator()(const Forward& forward, const Batch& batch) const {
  return loss(logits(forward, batch), forward, batch);
}

Forward forward_of(const RunConfig& config, const Batch& batch, bool training) {
  Forward forward;
  forward.training = training;
  forward.dropout_key = key_of(static_cast<uint64_t>(config.seed), "dropout");
  forward.samples_B = batch.samples_B;
  forward.documents_BT = batch.documents_BT;
  forward.kernels = config.precision == Precision::fp64 ? Kernels::reference : config.kernels;
  return forward;
}

}  // namespace quell
