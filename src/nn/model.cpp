#include "nn/model.h"

namespace quell {
namespace {

Model make(ParameterList& into, const DecoderConfig& config) { return Decoder(into, config); }
Model make(ParameterList& into, const VitConfig& config) { return Vit(into, config); }

}  // namespace

Model make_model(ParameterList& into, const ModelConfig& config) {
  return std::visit([&](const auto& c) { return make(into, c); }, config);
}

const std::vector<Block>& blocks_of(const Model& model) {
  return std::visit([](const auto& m) -> const std::vector<Block>& { return m.blocks(); }, model);
}

}  // namespace quell
