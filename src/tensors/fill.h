// Initial values from counters (DESIGN section 7): the values of a parameter are a function of (seed, its name, its shape) alone,
// so they are the same for any number of ranks or threads, and unchanged when another parameter is added.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "tensors/arena.h"
#include "tensors/parameter.h"

namespace quell {

// Element i of a flat CPU tensor (fp32 or fp64; fp64 values round to the fp32 ones) by Philox and the Box-Muller transform.
void fill(at::Tensor& flat, const Initial& initial, uint64_t key);

// All parameters' values, and then the bf16 copies.
void fill(ParameterList& parameters, Arena& arena, uint64_t seed);

// Keep mask of dropout as a function of (key, element): 1/(1-p) with probability 1-p, else 0, in `like`'s type and shape.
at::Tensor dropout_mask(const at::Tensor& like, double probability, uint64_t key);

// The same for a batch: the mask of sample b is a function of (key, samples_B[b]) alone, so it does not depend on how a batch is
// cut into micro-batches or ranks. like_B is [B, ...], samples_B int64 on the CPU.
at::Tensor dropout_masks(const at::Tensor& like_B, double probability, uint64_t key, const at::Tensor& samples_B);

}  // namespace quell
