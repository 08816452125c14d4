// The interface of the CPU rotary kernel. Raw pointers only; rotary.cpp owns shapes, types and threads.
#pragma once

#include <cstdint>

namespace quell::ops {

// x [B, T, H, D] by strides (in elements; D contiguous), y dense, cos and sin [T, R] dense fp32.
struct RotaryRows {
  const void* x;
  void* y;
  const float* cos;
  const float* sin;
  int64_t length, heads, width, pairs;
  int64_t batch_stride, position_stride, head_stride;
  bool bf16;
  bool interleaved;
  float direction;  // 1, or -1 for the rotation back
};

struct RotaryKernels {
  void (*rotate)(const RotaryRows&, int64_t begin, int64_t end);  // rows b * length + t
};

}  // namespace quell::ops
