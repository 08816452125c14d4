// The world of one: it changes nothing and still refuses arguments that a larger world would refuse.
#include "base/error.h"
#include "dist/world.h"
#include "support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;

TEST_CASE("a world of one is rank 0 of 1 and its collectives change nothing", "[unit]") {
  const World world;
  CHECK(world.rank() == 0);
  CHECK(world.size() == 1);
  at::Tensor tensor = testing::random_tensor({3, 5}, 1);
  const at::Tensor before = tensor.clone();
  world.sum(tensor);
  world.max(tensor);
  world.broadcast(tensor, 0);
  world.barrier();
  CHECK(at::equal(tensor, before));
}

TEST_CASE("a world refuses undefined tensors and ranks that do not exist", "[unit]") {
  const World world;
  at::Tensor undefined, tensor = at::zeros({2});
  CHECK_THROWS_AS(world.sum(undefined), Bug);
  CHECK_THROWS_AS(world.max(undefined), Bug);
  CHECK_THROWS_AS(world.broadcast(undefined, 0), Bug);
  CHECK_THROWS_AS(world.broadcast(tensor, 1), Bug);
  CHECK_THROWS_AS(world.broadcast(tensor, -1), Bug);
}
