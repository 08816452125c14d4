// Which initial values a parameter gets (`model.init`); the drawing itself is tensors/fill.h.
#pragma once

#include "nn/config.h"
#include "tensors/parameter.h"

namespace quell {

Initial initial_matrix(const DecoderConfig& config, int64_t fan_in);
// Projections that write into the residual stream: of attention and of the MLP.
Initial initial_residual(const DecoderConfig& config, int64_t fan_in);
Initial initial_embedding(const DecoderConfig& config);
Initial initial_output(const DecoderConfig& config);

}  // namespace quell
