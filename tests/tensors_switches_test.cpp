// The process-wide switches have the effect that they promise.
#include <catch2/catch.hpp>

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "tensors/switches.h"

using namespace quell;

TEST_CASE("the switches set threads, flush denormals in every thread and are described", "[unit]") {
  const int before = at::get_num_threads();
  // A pool whose threads are there already does not inherit the flag from the thread that sets it.
  at::set_num_threads(3);
  at::parallel_for(0, 3, 1, [](int64_t, int64_t) {});
  set_switches({.threads = 3, .deterministic = true});
  REQUIRE(at::get_num_threads() == 3);
  REQUIRE(at::globalContext().deterministicAlgorithms());
  REQUIRE_FALSE(at::globalContext().userEnabledCuDNNSDP());

  // As bits, since this thread now takes denormals for zero itself.
  std::vector<uint32_t> product(3, 1);
  volatile float tiny = 1e-30f;
  at::parallel_for(0, 3, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) product[i] = std::bit_cast<uint32_t>(tiny * 1e-10f);
  });
  REQUIRE(product == std::vector<uint32_t>(3, 0));

  const std::string text = libtorch_description();
  REQUIRE(text.substr(0, 2) == "2.");
  REQUIRE(text.find(", MKL 20") != std::string::npos);
  REQUIRE(text.find(", 3 threads") != std::string::npos);
  set_switches({.threads = before, .deterministic = false});
  REQUIRE_FALSE(at::globalContext().deterministicAlgorithms());
}
