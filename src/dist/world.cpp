// The collectives of a world of one: the arguments are checked as they will be in a larger world, and nothing moves.
#include "dist/world.h"

#include "base/error.h"

namespace quell {

void World::sum(at::Tensor& tensor) const { require(tensor.defined(), "world: sum of an undefined tensor"); }

void World::max(at::Tensor& tensor) const { require(tensor.defined(), "world: max of an undefined tensor"); }

void World::broadcast(at::Tensor& tensor, int from) const {
  require(tensor.defined(), "world: broadcast of an undefined tensor");
  require(from >= 0 && from < size(), "world: broadcast from a rank that does not exist");
}

void World::barrier() const {}

}  // namespace quell
