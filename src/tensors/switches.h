// LibTorch's process-wide switches, set once at start and nowhere else.
#pragma once

#include <string>

namespace quell {

struct Switches {
  int threads = 1;             // of one process, for at::parallel_for and GEMMs
  bool deterministic = false;  // GPU only: the CPU always is
};
void set_switches(const Switches& switches);

// "2.11.0, AVX512, MKL 2024.2, 2 threads": for the start block and --version.
std::string libtorch_description();

}  // namespace quell
