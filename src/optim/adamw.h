// AdamW (Loshchilov & Hutter 2019) on LibTorch's fused operator, one call a group over views of the unit arena, with
// clipping folded in. A step whose gradient or loss is not finite changes no value, no moment and no bias-correction
// count. Of several owners each has the moments of its share of the units (tensors/shares.h), updates the values there, and gets the
// others' values from them (ZeRO-1, Rajbhandari et al. 2020).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dist/world.h"
#include "optim/config.h"
#include "tensors/arena.h"
#include "tensors/parameter.h"
#include "tensors/shares.h"
#include "tensors/state.h"

namespace quell {

// One role's parameters with what the optimiser does to them; printed at start.
struct ParameterGroup {
  Role role;
  double decay, lr_factor;
  Optional<double> clamp;
  std::vector<const Parameter*> parameters;
  int64_t numel = 0;
};
// Every trainable parameter in exactly one group; groups without parameters are left out.
std::vector<ParameterGroup> groups_of(const ParameterList& parameters, const OptimizerConfig& config);

class AdamW {
 public:
  // `owners`: the ranks that share the moments, in whose worlds the arena was padded; a world of one has them all.
  AdamW(ParameterList& parameters, Arena& arena, const OptimizerConfig& config, const World& owners = World());

  // The global norm of the arena's gradients: a scalar tensor of the master type on the arena's device, within a few
  // ulp of the norm in real numbers for any size of model. Not finite where an element is not, or where the norm
  // exceeds about 1e19.
  at::Tensor gradient_norm() const;
  // Clips (by norm, with the norm given, which is that of the reduced gradient; the gradients may change), updates
  // values and moments, clamps, and refreshes bf16 copies, without waiting for the device. `factor` is
  // schedule_factor() of this step. Where `bad` (bool scalar tensor) holds, no value, moment or count of updates
  // changes. On all owners alike.
  void update(double factor, const at::Tensor& norm, const at::Tensor& bad);

  const std::vector<ParameterGroup>& groups() const { return groups_; }
  int64_t updates() const;  // those that were not bad; at most 2^24 are counted, where every bias correction is long 1
  // The moments by parameter name ("first.<name>", "second.<name>"; views, of several owners extracts), and the integer "updates".
  State state() const;
  // Throws one CheckpointError that lists every misfit, before anything is changed.
  void restore(const State& stored);

 private:
  // Lists of views, one entry a parameter of the group of which this owner has some, as the operator wants them.
  struct Views {
    std::vector<at::Tensor> values, gradients, first, second, counts;
  };
  std::optional<at::Tensor> clip(const at::Tensor& norm);
  void update_group(size_t index, double factor, const std::optional<at::Tensor>& scale, const at::Tensor& bad);
  void gather_values();
  at::Tensor scalar(double value) const;

  Arena& arena_;
  OptimizerConfig config_;
  World owners_;
  std::vector<Piece> pieces_;
  std::vector<ParameterGroup> groups_;
  std::vector<Views> views_;  // by group
  at::Tensor first_, second_;
  at::Tensor updates_;  // fp32 scalar on the device, since a bad step is known only there
};

}  // namespace quell
