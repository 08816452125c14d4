// Machines other than x86-64: the kernels as the compiler's default instruction set has them.
#include "ops/isa.h"

namespace quell::ops {

namespace baseline {
extern const CpuKernels kernel_set;
}

const std::vector<CpuKernels>& available_cpu_kernels() {
  static const std::vector<CpuKernels> sets{baseline::kernel_set};
  return sets;
}

}  // namespace quell::ops
