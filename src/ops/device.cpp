// The words for what visible_cuda_devices found, the same in every build.
#include "ops/device.h"

#include "base/text.h"

namespace quell::ops {

std::string cuda_description(const CudaDevices& visible) {
  if (!visible.built) return "this build has no CUDA";
  if (visible.devices.empty()) return cat("no CUDA device is visible (", visible.why_none, ")");
  std::vector<std::string> parts;
  for (const CudaDevice& device : visible.devices) {
    parts.push_back(cat("cuda:", parts.size(), " (", device.name, ", ", human_bytes(device.memory), ")"));
  }
  return cat("visible are ", join(parts, ", "));
}

}  // namespace quell::ops
