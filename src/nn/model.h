// The kinds of model as one value, and what the rest of the program asks of either.
#pragma once

#include <variant>
#include <vector>

#include "nn/decoder.h"
#include "nn/vit.h"

namespace quell {

using Model = std::variant<Decoder, Vit>;

Model make_model(ParameterList& into, const ModelConfig& config);
const std::vector<Block>& blocks_of(const Model& model);

}  // namespace quell
