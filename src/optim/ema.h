// An exponential moving average of all values: average += (1 - d) * (values - average) after every update that was not bad, with
// d = min(decay, (1 + t) / (10 + t)) at update t, so that the first values are forgotten in short runs too.
#pragma once

#include <ATen/core/Tensor.h>

#include "tensors/arena.h"
#include "tensors/state.h"

namespace quell {

class Ema {
 public:
  Ema(Arena& arena, double decay);  // begins as the values are

  // After each update; where `bad` (bool scalar tensor) holds, nothing changes and nothing is counted.
  void follow(const at::Tensor& bad);

  // The average by parameter name, as views, and the integer "updates".
  State state(const ParameterList& parameters) const;
  // Throws one CheckpointError that lists every misfit, before anything is changed.
  void restore(const ParameterList& parameters, const State& stored);

  // While it lives, the arena's values are the average, and the average holds what the values were.
  class Instead {
   public:
    explicit Instead(Ema& ema) : ema_(ema) { ema_.swap(); }
    ~Instead() { ema_.swap(); }
    Instead(const Instead&) = delete;
    Instead& operator=(const Instead&) = delete;

   private:
    Ema& ema_;
  };

 private:
  void swap();

  Arena& arena_;
  double decay_;
  at::Tensor average_;
  at::Tensor updates_;  // fp64 scalar on the device, since a bad step is known only there
};

}  // namespace quell
