// What the .cu files define, for a build without CUDA.
#include "ops/device.h"

namespace quell::ops {

CudaDevices visible_cuda_devices() { return {}; }

}  // namespace quell::ops
