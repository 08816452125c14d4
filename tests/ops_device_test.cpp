// The devices that we see are LibTorch's, and a CUDA build really loads its CUDA operators, with or without a GPU.
#include <ATen/Context.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <catch2/catch.hpp>

#include "ops/device.h"

namespace quell::ops {

TEST_CASE("the visible devices are LibTorch's, whose CUDA operators are loaded in a CUDA build only", "[unit]") {
  const CudaDevices visible = visible_cuda_devices();
  CHECK(visible.devices.size() == at::getNumGPUs());
  CHECK(visible.why_none.empty() == (!visible.built || !visible.devices.empty()));
  const auto mm = c10::Dispatcher::singleton().findSchemaOrThrow("aten::mm", "");
  CHECK(mm.hasKernelForDispatchKey(c10::DispatchKey::CUDA) == visible.built);
  CHECK(mm.hasKernelForDispatchKey(c10::DispatchKey::CPU));
}

TEST_CASE("the devices are described, or why there are none", "[unit]") {
  CHECK(cuda_description({}) == "this build has no CUDA");
  CHECK(cuda_description({.built = true, .why_none = "no driver"}) == "no CUDA device is visible (no driver)");
  const double gib = 1 << 30;
  CHECK(cuda_description({.built = true, .devices = {{"Big", 140 * gib}, {"Small", 8 * gib}}}) ==
        "visible are cuda:0 (Big, 140.0 GiB), cuda:1 (Small, 8.0 GiB)");
}

}  // namespace quell::ops
