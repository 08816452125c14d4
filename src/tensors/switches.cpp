// LibTorch's process-wide switches. Everything here is global state of another library; nothing of ours is kept.
#include "tensors/switches.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <cstdlib>

namespace quell {

void set_switches(const Switches& switches) {
  at::Context& context = at::globalContext();
  at::set_num_threads(switches.threads);
  // The flag belongs to a thread: set it in this one and in every worker of the pool.
  context.setFlushDenormal(true);
  at::parallel_for(0, switches.threads, 1, [&](int64_t, int64_t) { context.setFlushDenormal(true); });

  context.setDeterministicAlgorithms(switches.deterministic, /*warn_only=*/false);
  context.setDeterministicFillUninitializedMemory(false);
  context.setDeterministicCuDNN(switches.deterministic);
  context.setBenchmarkCuDNN(false);
  // cuBLAS reads this at its first call and is deterministic only with a fixed workspace.
  if (switches.deterministic) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  // cuDNN's attention has returned NaN and wrong gradients on Hopper (pytorch/pytorch issues 196678, 150700).
  context.setSDPUseCuDNN(false);
}

std::string libtorch_description() {
  std::string mkl = at::get_mkl_version();
  const size_t version = mkl.find("Version ");
  if (version != std::string::npos) {
    const size_t begin = version + 8;
    mkl = ", MKL " + mkl.substr(begin, mkl.find('-', begin) - begin);
  } else {
    mkl = ", no MKL";
  }
  const int threads = at::get_num_threads();
  return std::string(TORCH_VERSION) + ", " + at::get_cpu_capability() + mkl + ", " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads");
}

}  // namespace quell
