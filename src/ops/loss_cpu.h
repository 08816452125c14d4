// The interface of the CPU kernels for the losses on output logits (loss_cpu.cpp). Raw pointers only; loss.cpp owns
// shapes, types, threads and the sums over rows. V vocabulary, N rows.
#pragma once

#include <cstdint>

namespace quell::ops {

struct LossRows {
  bool bf16;                // what `logits` holds, otherwise fp32
  int64_t vocabulary;
  int64_t row_stride;
  void* logits;             // backward replaces them by their gradient
  const int64_t* targets;   // [N]; below 0: the row is not scored, its gradient is 0
  double softcap;           // 0: none
  double label_smoothing, z, max_z;

  // [N] each, of the capped logits: forward writes them for scored rows, backward reads them.
  double* largest;
  double* sum;              // of exp(logit - largest)
  double* target_logit;
  double* total;            // sum of the logits, with label smoothing only
  int64_t* argmax;          // first of the largest, before the cap

  double gradient;          // of the objective, backward only
};

// Rows [begin, end).
struct LossKernels {
  void (*forward)(const LossRows&, int64_t begin, int64_t end);
  void (*backward)(const LossRows&, int64_t begin, int64_t end);
};

}  // namespace quell::ops
