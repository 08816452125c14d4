#include "optim/ema.h"

#include <algorithm>

namespace quell {

Ema::Ema(Arena& arena, double decay) : arena_(arena), decay_(decay), average_(arena.values().detach().clone()) {}

void Ema::follow(int64_t update, const at::Tensor& bad) {
  at::NoGradGuard no_gradients;
  const auto t = static_cast<double>(update);
  const double weight = 1 - std::min(decay_, (1 + t) / (10 + t));
  average_.lerp_(arena_.values(), bad.logical_not().to(average_.scalar_type()) * weight);
}

void Ema::swap() {
  at::NoGradGuard no_gradients;
  const at::Tensor values = arena_.values().detach().clone();
  arena_.values().detach().copy_(average_);
  average_.copy_(values);
  arena_.refresh_compute();
}

}  // namespace quell
