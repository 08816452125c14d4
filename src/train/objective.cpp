#include "train/objective.h"

namespace quell {

LanguageModel::LanguageModel(const Decoder& model, const LossConfig& loss)
    : model_(model),
      options_{.label_smoothing = loss.label_smoothing,
               .z = loss.z,
               .max_z = loss.max_z,
               .softcap = model.config().output.softcap} {}

ops::LossSums LanguageModel::operator()(const Forward& forward, const Batch& batch) const {
  const at::Tensor x_BTC = model_(forward, batch.inputs_BT);
  const at::Tensor logits_NV = model_.logits(x_BTC.reshape({-1, x_BTC.size(2)}), forward.kernels);
  ops::LossOptions options = options_;
  options.kernels = forward.kernels;
  return ops::output_loss(logits_NV, batch.targets_BT.reshape(-1), options);
}

}  // namespace quell
