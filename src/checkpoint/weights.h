// A model's parameters in one safetensors file, by name: the final weights of a run and what `model.init.from` starts
// from.
#pragma once

#include <string>

#include "checkpoint/safetensors.h"
#include "tensors/arena.h"
#include "tensors/parameter.h"

namespace quell {

// In the master type (F32, or F64 under precision fp64), frozen parameters too; atomically.
void save_weights(const std::string& path, const ParameterList& parameters, const Metadata& metadata);

// Copies the file's tensors, of any floating-point type, into the parameters' values and refreshes bf16 copies. Throws
// one CheckpointError that lists every missing, extra and misshapen name (with both shapes) and every tensor of
// integers, before anything is changed.
void load_weights(const std::string& path, ParameterList& parameters, Arena& arena);

}  // namespace quell
