// What a rank would have all ranks do once the step in hand is done. They are agreed on by what any of them wants, so that all do it after
// the same step.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "dist/world.h"

namespace quell {

struct Wishes {
  bool stop = false;        // a signal, or the file STOP
  bool time_is_up = false;
};
using Asked = std::function<Wishes()>;

// In one reduction with a number of the caller's, which becomes the largest of any rank.
Wishes agree(const World& world, const Wishes& here, at::Tensor* largest = nullptr);

}  // namespace quell
