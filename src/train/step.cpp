#include "train/step.h"

#include <algorithm>

#include "base/signals.h"
#include "base/text.h"
#include "dist/agreement.h"
#include "optim/schedule.h"

namespace quell {
namespace {

struct Drawn {
  std::vector<Batch> batches;
  double targets = 0;  // scored ones of the whole step over all ranks; at least 1, so that a step without any has a zero gradient
};

Drawn draw(Run& run, int64_t step) {
  Drawn drawn;
  const Attempt reading([&] { drawn.batches = run.batches(step); });
  at::Tensor counts = at::zeros({2}, at::kLong);
  for (const Batch& batch : drawn.batches) counts[0] += batch.targets_BT.ne(ops::ignored_target).sum();
  if (reading.failed()) counts[1] = 1;
  run.world.sum(counts);
  if (counts[1].item<int64_t>() > 0) reading.settle(run.world);
  drawn.targets = std::max(1.0, counts[0].item<double>());
  return drawn;
}

}  // namespace

StepResult train_step(Run& run, int64_t step, HealthSums* health, const Asked& asked) {
  const auto [batches, targets] = draw(run, step);
  run.arena.clear_gradients();

  StepResult result;
  for (const Batch& batch : batches) {
    signals::set_place("step", step);
    if (&batch == &batches.back()) run.reducer.arm();
    Forward forward = run.forward(batch, true);
    forward.health = health;
    const ops::LossSums loss = run.objective(forward, batch);
    (loss.objective / targets).backward();
    result.totals.add(loss);
  }
  run.reducer.finish();  // the gradients now hold the sum over ranks

  result.norm = run.optimizer.gradient_norm();
  result.bad = at::isfinite(result.norm).logical_and(at::isfinite(result.totals.objective_sum())).logical_not();
  result.wishes = agree(run.world, asked ? asked() : Wishes(), &result.bad);
  result.bad = result.bad.to(at::kBool);
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
  return found;
}

}  // namespace quell
