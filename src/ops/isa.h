// The sets of CPU kernels, one for each instruction set that they are compiled for, and the choice between them at run time.
// A new file of kernels adds its struct of function pointers here and in isa_set_cpu.cpp. No torch header.
#pragma once

#include <vector>

#include "ops/activation_cpu.h"
#include "ops/flash_attention_cpu.h"
#include "ops/loss_cpu.h"
#include "ops/norm_cpu.h"
#include "ops/product_cpu.h"
#include "ops/rotary_cpu.h"

namespace quell::ops {

struct CpuKernels {
  const char* name;  // "baseline", "avx2", "avx512"
  const NormKernels& norm;
  const ActivationKernels& activation;
  const RotaryKernels& rotary;
  const LossKernels& loss;
  const FlashKernels& flash;
  const ProductKernels& product;
};

// Those that this machine can run, best last; never empty.
const std::vector<CpuKernels>& available_cpu_kernels();
inline const CpuKernels& cpu_kernels() { return available_cpu_kernels().back(); }

}  // namespace quell::ops
