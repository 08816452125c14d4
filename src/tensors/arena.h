// The memory of all parameters (DESIGN section 7). One flat buffer of values, one of gradients, under bf16 one of bf16 copies;
// parameters are views. Memory is laid out in units in order of first use; every view starts at a multiple of 64 bytes and every
// unit is padded to world x 64 bytes. Frozen parameters follow after the last unit and have no gradient: the buffers of gradients
// and moments are `trainable()` elements long.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "tensors/parameter.h"

namespace quell {

enum class Precision { fp32, bf16, fp64 };

struct Range {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int64_t size() const { return end - begin; }
};

struct ArenaOptions {
  Precision precision = Precision::fp32;
  int64_t world = 1;
  at::Device device = at::kCPU;
};

// Where every parameter lies, without the memory itself: `quell plan` counts with it what an Arena will take.
struct ArenaLayout {
  std::vector<std::pair<const Parameter*, Range>> ranges;
  std::vector<Range> units;             // trainable units, in order of first use
  int64_t trainable = 0, elements = 0;  // of gradients and each moment; of values and copies
};
ArenaLayout layout_of(const ParameterList& parameters, Precision precision, int64_t world);

class Arena {
 public:
  // Allocates (values and gradients start at zero) and binds value, compute and compute.grad() of every parameter. The
  // list must outlive the arena.
  Arena(ParameterList& parameters, const ArenaOptions& options);

  const at::Tensor& values() const { return values_; }        // 1-D, master type; trainable units first, then frozen
  const at::Tensor& gradients() const { return gradients_; }  // 1-D, master type, trainable() long
  int64_t trainable() const { return layout_.trainable; }
  const std::vector<Range>& units() const { return layout_.units; }  // trainable units, in order of first use
  // Where a parameter lies in the flat buffers.
  Range range(const Parameter& parameter) const;
  // `flat` (a moment or the gradients) as seen through this parameter, in its shape.
  at::Tensor view(const at::Tensor& flat, const Parameter& parameter) const;

  void clear_gradients();   // in place: views stay bound
  void refresh_compute();   // after values changed: bf16 copies follow (nothing to do otherwise)

  at::ScalarType master_type() const { return values_.scalar_type(); }

 private:
  void bind(Parameter& parameter) const;

  ArenaLayout layout_;
  at::Tensor values_, gradients_, copies_;
};

}  // namespace quell
