// x86-64: three levels (x86-64-v2, -v3, -v4), of which the processor is asked once.
#include "ops/isa.h"

namespace quell::ops {

namespace baseline {
extern const CpuKernels kernel_set;
}
namespace avx2 {
extern const CpuKernels kernel_set;
}
namespace avx512 {
extern const CpuKernels kernel_set;
}

const std::vector<CpuKernels>& available_cpu_kernels() {
  static const std::vector<CpuKernels> sets = [] {
    std::vector<CpuKernels> found{baseline::kernel_set};
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (v3) found.push_back(avx2::kernel_set);
    if (v4) found.push_back(avx512::kernel_set);
    return found;
  }();
  return sets;
}

}  // namespace quell::ops
