#include "train/step.h"

#include <algorithm>

#include "base/text.h"
#include "optim/schedule.h"

namespace quell {
namespace {

// Scored targets of the whole step over all ranks; at least 1, so that a step without any has a zero gradient.
double count_targets(const Run& run, const std::vector<Batch>& batches) {
  at::Tensor count = at::zeros({}, at::kLong);
  for (const Batch& batch : batches) count += batch.targets_BT.ne(ops::ignored_target).sum();
  run.world.sum(count);
  return std::max(1.0, count.item<double>());
}

}  // namespace

StepResult train_step(Run& run, int64_t step, HealthSums* health) {
  const std::vector<Batch> batches = run.batches(step);
  const double targets = count_targets(run, batches);
  run.arena.clear_gradients();

  StepResult result;
  for (const Batch& batch : batches) {
    Forward forward = run.forward(batch, true);
    forward.health = health;
    const ops::LossSums loss = run.objective(forward, batch);
    (loss.objective / targets).backward();
    result.totals.add(loss);
  }
  run.reducer.finish();  // the gradients now hold the sum over ranks
  result.totals.reduce(run.world);

  result.norm = run.optimizer.gradient_norm();
  result.bad = at::isfinite(result.norm).logical_and(at::isfinite(result.totals.objective_sum())).logical_not();
  run.optimizer.update(schedule_factor(run.config.optimizer.schedule, step, run.steps), result.norm, result.bad);
  if (run.ema) run.ema->follow(result.bad);
  return result;
}

std::string first_bad_tensor(Run& run, int64_t step) {
  std::string found;
  const auto note = [&](const at::Tensor& x, const std::string& name) {
    if (found.empty() && !at::isfinite(x.detach()).all().item<bool>()) found = name;
  };
  for (const Parameter& parameter : run.parameters) note(parameter.value, "the value of " + parameter.name);
  run.arena.clear_gradients();
  for (const Batch& batch : run.reread(step)) {
    Forward forward = run.forward(batch, true);
    forward.around = [&](int64_t unit, const at::Tensor& x, const Forward::Body& body) {
      note(x, unit == 1 ? "the embedding's output" : cat("the output of blocks.", unit - 2));
      at::Tensor y = body(x);
      note(y, cat("the output of blocks.", unit - 1));
      return y;
    };
    const ops::LossSums loss = run.objective(forward, batch);
    note(loss.objective, "the loss");
    loss.objective.backward();
  }
  for (const Parameter& parameter : run.parameters) {
    if (!parameter.frozen) note(run.arena.view(run.arena.gradients(), parameter), "the gradient of " + parameter.name);
  }
  if (found.empty()) found = "none when computed again (an overflow in the sum over micro-batches or ranks, or a hardware fault)";
  return cat(found, "; samples ", step * run.batch, " to ", (step + 1) * run.batch - 1);
}

}  // namespace quell
