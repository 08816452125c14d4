// How many parameters and how much arithmetic a model has, by formula from its configuration alone (tests hold both against the
// built model). FLOPs: a multiplication with its addition counts as two; norms, activations and softmax are left out, as usual.
#pragma once

#include <cstdint>

#include "nn/config.h"

namespace quell {

int64_t count_parameters(const DecoderConfig& config);
int64_t count_parameters(const VitConfig& config);
int64_t count_parameters(const ModelConfig& config);

// Forward and backward (3 x forward) for one sample, a full window or an image: for each token 6 x (parameters in matrix products)
// plus 12 x layers x heads x head_width x (mean number of visible keys) for attention; what is computed once a sample is counted so.
double flops_per_sample(const DecoderConfig& config);
double flops_per_sample(const VitConfig& config);
double flops_per_sample(const ModelConfig& config);

}  // namespace quell
