// A copy of a run's state in memory of its own, from which a save is written while training goes on. The memory is kept from the
// first save on.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "tensors/state.h"

namespace quell {

struct StagedTensor {
  std::string name;
  at::ScalarType type;
  std::vector<int64_t> shape;
  const char* at;  // its elements, row by row
  uint64_t bytes;
};

struct StagedFile {
  std::string name;  // "weights.safetensors"
  std::vector<StagedTensor> tensors;  // by name
};

class Staging {
 public:
  // Copies what the tensors of `state` are views of, each memory once and whole, so that the copy runs at the speed of memory
  // however many tensors there are. A tensor "weights.output.weight" goes to the file weights.safetensors under output.weight.
  // The result points into this object and holds until the next call. Tensors are contiguous and on the CPU.
  std::vector<StagedFile> take(const State& state);

  uint64_t bytes() const;  // of the copies

 private:
  std::map<const void*, at::Tensor> copies_;  // by where the original begins
};

}  // namespace quell
