// The processes that train together. A world of one is the same type and does nothing, so no other room ever asks
// whether the run is distributed. (Worlds larger than one: an issue of their own; the constructor refuses them until
// then.)
#pragma once

#include <ATen/core/Tensor.h>

namespace quell {

class World {
 public:
  World() = default;  // a world of one

  int rank() const { return 0; }
  int size() const { return 1; }

  // In place, over all ranks; every rank must call with the same shape and type, in the same order.
  void sum(at::Tensor& tensor) const;
  void max(at::Tensor& tensor) const;
  void broadcast(at::Tensor& tensor, int from) const;
  void barrier() const;
};

}  // namespace quell
