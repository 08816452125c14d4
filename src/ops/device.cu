// visible_cuda_devices of a build with CUDA. It runs on machines without a GPU or a driver too, so that no answer of the
// runtime's is an error here.
#include "ops/device.h"

#include <cuda_runtime.h>

namespace quell::ops {

CudaDevices visible_cuda_devices() {
  CudaDevices visible{.built = true};
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted != cudaSuccess) count = 0;
  if (count == 0) {
    int driver = 0;
    // With no driver at all the runtime calls it too old.
    const bool there = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
    visible.why_none = !there                   ? "no NVIDIA driver is installed"
                       : counted == cudaSuccess ? "the driver lists none"
                                                : cudaGetErrorString(counted);
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    const cudaError_t asked = cudaGetDeviceProperties(&properties, i);
    if (asked == cudaSuccess) {
      visible.devices.push_back({properties.name, static_cast<double>(properties.totalGlobalMem)});
    } else {
      visible.devices.push_back({std::string("does not answer: ") + cudaGetErrorString(asked), 0});
    }
  }
  // The runtime keeps a failure, and LibTorch would report it at its next check as its own.
  cudaGetLastError();
  return visible;
}

}  // namespace quell::ops
