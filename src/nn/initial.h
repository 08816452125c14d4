// Which initial values a parameter gets (`model.init`); the drawing itself is tensors/fill.h.
#pragma once

#include "nn/transformer_config.h"
#include "tensors/parameter.h"

namespace quell {

Initial initial_matrix(const TransformerConfig& config, int64_t fan_in);
// Projections that write into the residual stream: of attention and of the MLP.
Initial initial_residual(const TransformerConfig& config, int64_t fan_in);
// The map of patches: by its fan-in under every kind, since pixels are no stream of unit size and 0.02 would leave it nearly empty.
Initial initial_patch(const TransformerConfig& config, int64_t fan_in);
// Vectors of the stream's width: tokens, positions.
Initial initial_embedding(const TransformerConfig& config);
Initial initial_output(const TransformerConfig& config);

}  // namespace quell
