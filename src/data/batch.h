// What a micro-batch is: CPU tensors, int64 but for images, moved to the device by the step. B samples, T positions; C channels
// of H x W pixels. Text has inputs_BT, images have images_BCHW; the other one is undefined.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace quell {

struct Batch {
  at::Tensor inputs_BT;     // tokens
  at::Tensor targets_BT;    // the next tokens; -1 where not scored. Of images: their classes, shape [B]
  at::Tensor documents_BT;  // document of each input, or undefined: attention stays inside documents
  at::Tensor images_BCHW;   // float32, normalised
  at::Tensor answers_BT;    // of the copy task's evaluation: which input each scored target repeats, -1 elsewhere; or undefined
  at::Tensor samples_B;     // positions in the data, the key of everything random about a sample
};

}  // namespace quell
