// What is said of a CUDA device that cannot be trained on, by the devices that are visible; the machine needs none.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/text.h"
#include "train/start.h"

namespace quell {

TEST_CASE("a CUDA device that is not there is the machine's fault, one that is there a limit of this version", "[unit]") {
  const auto refused = [](const char* device, const ops::CudaDevices& visible) -> std::string {
    try {
      refuse_cuda(device, visible);
    } catch (const Error& error) {
      return cat(static_cast<int>(error.exit()), " ", error.what());
    }
  };
  const ops::CudaDevices none{.built = true, .why_none = "no driver"}, one{.built = true, .devices = {{"Big", 1 << 30}}};
  const std::string remedy = "; set device to auto or cpu";
  CHECK(refused("cuda:0", {}) == "7 device: cuda:0 is not there: this build has no CUDA" + remedy);
  CHECK(refused("cuda:0", none) == "7 device: cuda:0 is not there: no CUDA device is visible (no driver)" + remedy);
  CHECK(refused("cuda:1", one) == "7 device: cuda:1 is not there: visible are cuda:0 (Big, 1.0 GiB)" + remedy);
  CHECK(refused("cuda:0", one) == "2 device: cuda:0 (Big) is there, but training on it is not finished in this version" + remedy);
}

}  // namespace quell
