// Which CUDA devices this process sees. device.cu asks the CUDA runtime; no_cuda.cpp stands in its place in a build without
// CUDA. Chooses no device and computes nothing on one. No torch header.
#pragma once

#include <string>
#include <vector>

namespace quell::ops {

struct CudaDevice {
  std::string name;
  double memory = 0;  // bytes, in use or not
};

struct CudaDevices {
  bool built = false;               // whether this build has CUDA
  std::vector<CudaDevice> devices;  // by their number in cuda:N, which CUDA_VISIBLE_DEVICES changes
  std::string why_none;             // where a build with CUDA sees none
};

// Never throws: without a driver there are none. The first call loads the driver.
CudaDevices visible_cuda_devices();

// "this build has no CUDA", "no CUDA device is visible (no NVIDIA driver is installed)" or "visible are cuda:0 (A, 80.0 GiB)".
std::string cuda_description(const CudaDevices& visible);

}  // namespace quell::ops
