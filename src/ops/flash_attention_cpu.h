// The interface of the CPU kernels of flash attention (flash_attention_cpu.cpp). Raw pointers only; flash_attention.cpp owns
// shapes, types and threads. B batch, T position, H query heads, G key/value heads, D head width, P: D padded to 16 floats.
#pragma once

#include <cstdint>

namespace quell::ops {

// A tensor [B, T, heads, width] with contiguous width; strides in elements.
struct HeadRows {
  void* at;
  int64_t batch, position, head;
};

struct FlashAttention {
  bool bf16;                // what q, k, v, out and d_out hold, otherwise fp32
  int64_t batch, length, heads, group, width;  // group: query heads of one key/value head
  HeadRows q, k, v, out;
  float* lse;               // [B, H, T]: log-sum-exp of each row's visible logits, forward only
  float *largest, *sum;     // [B, H, T]: their maximum, and the sum of exp(logit - maximum)
  const int32_t* document;  // [B, T], or null
  bool causal;
  int64_t window;           // at most T; T: all
  float scale;

  // Backward only; the gradients are fp32 [B, T, H, P], those of k and v one a query head.
  HeadRows d_out, dq, dk, dv;
};

// Tasks [begin, end) of flash_tasks, or of batch * heads for the gradients. `scratch` holds flash_scratch floats.
struct FlashKernels {
  void (*forward)(const FlashAttention&, int64_t begin, int64_t end, float* scratch);
  void (*backward)(const FlashAttention&, int64_t begin, int64_t end, float* scratch);
};

inline constexpr int64_t flash_block = 64;  // queries, and keys, at a time
inline int64_t flash_padded(int64_t width) { return (width + 15) / 16 * 16; }
inline int64_t flash_whole_blocks(int64_t length) { return (length + flash_block - 1) / flash_block * flash_block; }
inline int64_t flash_tasks(const FlashAttention& a) { return a.batch * a.heads * (flash_whole_blocks(a.length) / flash_block); }
inline int64_t flash_scratch(const FlashAttention& a, bool back) {
  return flash_block * (2 * (back ? flash_whole_blocks(a.length) : flash_block) + 7 * flash_padded(a.width) + 3);
}

}  // namespace quell::ops
