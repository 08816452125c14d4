// What every function of this room decides first: whether its twin runs. Fused kernels know fp32 and bf16; float64 exists for
// proofs and runs the twins.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "base/error.h"
#include "ops/options.h"

namespace quell::ops {

// For functions made of LibTorch's own products, on any device. Throws UsageError for kernels: fused in another type.
inline bool runs_twin(Kernels kernels, at::ScalarType type, const char* what) {
  if (kernels == Kernels::reference) return true;
  if (type == at::kFloat || type == at::kBFloat16) return false;
  if (kernels == Kernels::fused) {
    throw UsageError(std::string("kernels: fused: ") + what + " has kernels for fp32 and bf16, not for " + c10::toString(type) +
                     "; use kernels: auto or reference, or precision: fp32 or bf16");
  }
  return true;
}

// For functions with CPU kernels.
inline bool runs_twin(Kernels kernels, const at::Tensor& x, const char* what) {
  if (runs_twin(kernels, x.scalar_type(), what)) return true;
  if (x.is_cpu()) return false;
  if (kernels == Kernels::fused) {
    throw UsageError(std::string("kernels: fused: ") + what + " has no kernel for this device; use kernels: auto or reference");
  }
  return true;
}

}  // namespace quell::ops
