// What a run is told to stand on: device, threads, LibTorch, the measured rate of matrix products, parameters, groups and
// tokens a step.
#pragma once

#include <string>
#include <vector>

#include "ops/device.h"
#include "train/run.h"

namespace quell {

// Switches and step memory for this process. Throws as refuse_cuda does. Returns the threads in use: those of the run file, or one for each of
// `cores` (0: all that this process may use).
int prepare_process(const RunConfig& config, int cores = 0);

// Throws for the device cuda:N: a MachineError where it is not among the visible ones, a UsageError where it is, since nothing
// trains on it yet.
[[noreturn]] void refuse_cuda(const std::string& device, const ops::CudaDevices& visible);

// FLOP/s of fp32 matrix products (512 x 512 x 512) on this machine, measured for about 50 ms.
double probe_matrix_products();

// The start block, a line each.
std::vector<std::string> start_block(const Run& run, int threads, double peak_flops);

}  // namespace quell
