#include "optim/ema.h"

#include "base/error.h"
#include "base/text.h"

namespace quell {

Ema::Ema(Arena& arena, double decay)
    : arena_(arena),
      decay_(decay),
      average_(arena.values().detach().clone()),
      updates_(at::zeros({}, average_.options().dtype(at::kDouble))) {}

void Ema::follow(const at::Tensor& bad) {
  at::NoGradGuard no_gradients;
  const at::Tensor good = bad.logical_not().to(at::kDouble);
  updates_ += good;
  const at::Tensor weight = 1 - ((updates_ + 1) / (updates_ + 10)).clamp_max(decay_);
  average_.lerp_(arena_.values(), (good * weight).to(average_.scalar_type()));
}

State Ema::state(const ParameterList& parameters) const {
  State state{{}, {{"updates", static_cast<int64_t>(updates_.item<double>())}}, {}};
  for (const Parameter& parameter : parameters) state.tensors[parameter.name] = arena_.view(average_, parameter);
  return state;
}

void Ema::restore(const ParameterList& parameters, const State& stored) {
  const State live = state(parameters);
  const std::vector<std::string> problems = misfits(live, stored);
  if (!problems.empty()) throw CheckpointError("the moving average:\n  " + join(problems, "\n  "));
  copy_tensors(live, stored);
  updates_.fill_(stored.integers.at("updates"));
}

void Ema::swap() {
  at::NoGradGuard no_gradients;
  const at::Tensor values = arena_.values().detach().clone();
  arena_.values().detach().copy_(average_);
  average_.copy_(values);
  arena_.refresh_compute();
}

}  // namespace quell
