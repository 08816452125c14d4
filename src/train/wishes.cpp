#include "train/wishes.h"

#include <ATen/ATen.h>

namespace quell {

Wishes agree(const World& world, const Wishes& here, at::Tensor* largest) {
  at::Tensor flags = at::tensor({here.stop ? 1.0 : 0.0, here.time_is_up ? 1.0 : 0.0, 0.0}, at::kDouble);
  if (largest != nullptr) flags.select(0, 2).copy_(*largest);
  world.max(flags);
  if (largest != nullptr) *largest = flags.select(0, 2);
  return {flags[0].item<double>() > 0, flags[1].item<double>() > 0};
}

}  // namespace quell
