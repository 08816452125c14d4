// Worlds of several ranks over Gloo, each rank a process. The hidden cases are what one rank does.
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "dist/gradients.h"
#include "dist/rendezvous.h"
#include "base/error.h"
#include "ranks.h"
#include "support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

namespace quell {
namespace {

World join() {
  const Variables variables = variables_of_process();
  return join_world(membership_of(variables), variables, std::chrono::minutes(1)).world;
}

at::Tensor of_rank(int rank, at::IntArrayRef shape) { return testing::random_tensor(shape, static_cast<uint64_t>(rank + 1)); }

}  // namespace

TEST_CASE("rank: collectives", "[.]") {
  const World world = join();
  const int size = world.size();
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kLong}) {
    at::Tensor sum = at::full({3, 5}, world.rank() + 1, type), largest = sum.clone(), first = sum.clone();
    world.sum(sum);
    world.max(largest);
    world.broadcast(first, size - 1);
    CHECK(at::equal(sum, at::full({3, 5}, size * (size + 1) / 2, type)));
    CHECK(at::equal(largest, at::full({3, 5}, size, type)));
    CHECK(at::equal(first, largest));
  }
  at::Tensor turned = of_rank(world.rank(), {4, 6}).t(), scalar = at::full({}, 1.0), empty = at::zeros({0});
  const at::Tensor before = turned.clone();
  world.sum(turned);
  world.sum(scalar);
  world.sum(empty);
  at::Tensor expected = at::zeros_like(before);
  for (int rank = 0; rank < size; ++rank) expected += of_rank(rank, {4, 6}).t();
  CHECK(at::allclose(turned, expected, 1e-6, 1e-6));
  CHECK(scalar.item<double>() == size);
}

TEST_CASE("rank: agreement", "[.]") {
  const World world = join();
  CHECK_FALSE(world.any(false));
  CHECK(world.any(world.rank() == world.size() - 1));
  const World::Said nobody = world.first_said("");
  CHECK((nobody.rank == -1 && nobody.text.empty()));
  const World::Said said = world.first_said(world.rank() == 0 ? "" : "rank " + std::to_string(world.rank()) + " says \"\xc3\xa4\"");
  CHECK((said.rank == 1 && said.text == "rank 1 says \"\xc3\xa4\""));
  world.barrier();
}

TEST_CASE("collectives sum, maximise and broadcast over two and four ranks", "[multi]") {
  for (const int size : {2, 4}) testing::in_ranks(size, "rank: collectives");
}

TEST_CASE("ranks agree on what any of them wants, and hear the first that has something to say", "[multi]") {
  for (const int size : {2, 3}) testing::in_ranks(size, "rank: agreement");
}

TEST_CASE("where the launcher holds the store all ranks connect to it, the first too", "[multi]") {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  const auto agent = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  testing::in_ranks(2, "rank: collectives", {"TORCHELASTIC_USE_AGENT_STORE=True", cat("MASTER_PORT=", agent->getPort())});
}

}  // namespace quell
