// The interface of the CPU kernels for activations. Raw pointers only; activation.cpp owns shapes, types and threads.
#pragma once

#include <cstdint>

#include "ops/options.h"
#include "ops/rows.h"

namespace quell::ops {

// One input: up and d_up are null. Outputs are dense. `bf16` says what the pointers hold, otherwise fp32.
struct ActivationRows {
  MlpKind kind;
  bool bf16;
  int64_t width;
  const void* gate;  // or the only input
  const void* up;
  const void* dy;    // backward only
  Rows gate_rows, up_rows, dy_rows;
  void* out;         // y, or the gate's gradient
  void* d_up;
};

struct ActivationKernels {
  void (*forward)(const ActivationRows&, int64_t begin, int64_t end);
  void (*backward)(const ActivationRows&, int64_t begin, int64_t end);
};

}  // namespace quell::ops
