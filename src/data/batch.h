// What a micro-batch is: int64 CPU tensors, moved to the device by the step. B samples, T positions.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace quell {

struct Batch {
  at::Tensor inputs_BT;     // tokens
  at::Tensor targets_BT;    // the next tokens; -1 where not scored
  at::Tensor documents_BT;  // document of each input, or undefined: attention stays inside documents
  at::Tensor samples_B;     // positions in the data, the key of everything random about a sample
};

}  // namespace quell
