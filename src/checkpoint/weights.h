// A model's parameters in one safetensors file, by name: the final weights of a run and what `model.init.from` starts
// from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "tensors/arena.h"
#include "tensors/parameter.h"

namespace quell {

// In the master type (F32, or F64 under precision fp64), frozen parameters too; atomically.
void save_weights(const std::string& path, const ParameterList& parameters, const Metadata& metadata);

// What stands in for a saved tensor of another shape than the parameter's; undefined: nothing does.
using Refit = std::function<at::Tensor(const std::string& name, const at::Tensor& saved, const std::vector<int64_t>& shape)>;

// Copies the file's tensors, of any floating-point type, into the parameters' values and refreshes bf16 copies. Throws
// one CheckpointError that lists every missing, extra and misshapen name (with both shapes) and every tensor of
// integers, before anything is changed.
void load_weights(const std::string& path, ParameterList& parameters, Arena& arena, const Refit& refit = {});

}  // namespace quell
