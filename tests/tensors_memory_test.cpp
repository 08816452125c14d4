// The caching allocator. It is installed for the whole test program by the first test that calls it, as main does at
// start.
#include <catch2/catch.hpp>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <thread>

#include "base/machine.h"
#include "tensors/memory.h"

using namespace quell;

namespace {

at::Tensor bytes(int64_t count) { return at::empty({count}, at::kByte); }
constexpr int64_t mib = 1 << 20;

}  // namespace

TEST_CASE("a freed block is handed out again for the same size and for slightly smaller ones", "[unit]") {
  keep_step_memory();
  at::Tensor a = bytes(5 * mib);
  void* const address = a.data_ptr();
  a.reset();
  at::Tensor b = bytes(5 * mib);
  REQUIRE(b.data_ptr() == address);
  b.reset();
  at::Tensor c = bytes(5 * mib - 1000);
  REQUIRE(c.data_ptr() == address);
  at::Tensor d = bytes(5 * mib);
  REQUIRE(d.data_ptr() != address);
}

TEST_CASE("blocks of every size are aligned to 64 bytes, writable to the end, and counted", "[unit]") {
  keep_step_memory();
  std::vector<at::Tensor> live;
  const uint64_t before = memory_use().in_use;
  uint64_t total = 0;
  const std::vector<int64_t> sizes{1, 63, 4097, 65535, 65536, 65537, 2 * mib - 1, 2 * mib, 2 * mib + 1, 9 * mib + 13};
  for (const int64_t size : sizes) {
    live.push_back(bytes(size));
    live.back().fill_(7);
    REQUIRE(reinterpret_cast<uintptr_t>(live.back().data_ptr()) % 64 == 0);
    REQUIRE(live.back().max().item<int>() == 7);
    total += size;
  }
  REQUIRE(memory_use().in_use == before + total);
  REQUIRE(memory_use().peak >= before + total);
  const uint64_t kept = memory_use().kept;
  live.clear();
  REQUIRE(memory_use().in_use == before);
  REQUIRE(memory_use().kept >= kept + 13 * mib);
  REQUIRE(bytes(0).numel() == 0);
}

TEST_CASE("memory held for reuse stays within a quarter of the peak and 64 MiB", "[unit]") {
  keep_step_memory();
  for (int64_t size = mib; size < 40 * mib; size += size / 4) {
    for (int again = 0; again < 3; ++again) {
      at::Tensor one = bytes(size), two = bytes(size + size / 6);
      const MemoryUse use = memory_use();
      REQUIRE(use.in_use + use.kept <= use.peak / 4 * 5 + 64 * mib);
    }
  }
}

TEST_CASE("a request that the system refuses says so, and the program goes on", "[unit]") {
  keep_step_memory();
  bytes(8 * mib).reset();
  REQUIRE_THROWS_AS(bytes(int64_t{1} << 46), c10::OutOfMemoryError);
  REQUIRE(memory_use().kept == 0);  // everything was given back before the second try
  REQUIRE_THROWS_AS(bytes(int64_t{1} << 62), c10::OutOfMemoryError);
  REQUIRE(bytes(8 * mib).fill_(1).sum().item<int64_t>() == 8 * mib);
}

TEST_CASE("threads allocate and free at once without ever sharing a block", "[unit]") {
  keep_step_memory();
  std::vector<int> damaged(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t, &damaged] {
      at::NoGradGuard no_gradient;
      std::vector<at::Tensor> live(8);
      for (int i = 0; i < 400; ++i) {
        at::Tensor& slot = live[i % live.size()];
        if (slot.defined() && slot.const_data_ptr<uint8_t>()[slot.numel() - 1] != t) ++damaged[t];
        slot = bytes(40000 + (i * 7919) % 200000);
        std::fill_n(slot.mutable_data_ptr<uint8_t>(), slot.numel(), static_cast<uint8_t>(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(damaged == std::vector<int>(4, 0));
}

TEST_CASE("after ten steps a training step makes fewer than 100 minor page faults", "[unit]") {
  keep_step_memory();
  at::Tensor w1 = at::ones({256, 512}).requires_grad_(true);
  at::Tensor w2 = at::ones({512, 3000}).requires_grad_(true);
  const at::Tensor x = at::ones({512, 256});
  const auto step = [&] {
    const at::Tensor hidden = at::gelu(at::linear(x, w1.t()));
    at::log_softmax(at::linear(hidden, w2.t()), 1).select(1, 0).sum().backward();
    w1.mutable_grad().reset();
    w2.mutable_grad().reset();
  };
  for (int i = 0; i < 10; ++i) step();
  const uint64_t before = machine::minor_page_faults();
  for (int i = 0; i < 5; ++i) step();
  REQUIRE(machine::minor_page_faults() - before < 5 * 100);
}
