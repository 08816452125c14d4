#include "train/loop.h"

#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "train/evaluate.h"
#include "train/health.h"
#include "train/step.h"

namespace quell {
namespace {

// Inside an evaluation nothing of it has been reported yet.
void stop_here() {
  if (signals::stop_requested()) throw Stopped();
}

bool evaluation_due(const Run& run) {
  const int64_t every = run.config.evaluate.every;
  const bool wanted = run.step == 0 || run.step == run.steps || (every > 0 && run.step % every == 0);
  return wanted && run.evaluated != run.step;
}

std::string bad_numbers(Run& run, const StepResult& result) {
  const std::string what = cat("step ", run.step + 1, ": the loss is ", result.totals.objective(), " and the gradient's norm ",
                               result.norm.item<double>());
  return cat(what, "; the first tensor that is not finite is ", first_bad_tensor(run, run.step), "; bad steps in a row: ",
             run.finite.in_a_row(), ", none of which changed a weight");
}

// The seconds it took.
double evaluate_and_report(Run& run, Report& report) {
  signals::set_place("evaluation", run.step);
  const Timer timer;
  const std::vector<Evaluation> results = evaluate(run, [](const Batch&, const at::Tensor&) { stop_here(); });
  signals::set_place("generation", run.step);
  report.evaluation(run, run.step, results, timer.seconds(), [](int64_t) { stop_here(); });
  run.evaluated = run.step;
  return timer.seconds();
}

// One step with what is measured and said of it. Whether the run must end.
bool step_and_report(Run& run, Report& report, StepResult& result) {
  signals::set_place("step", run.step);
  HealthSums health = health_wanted(run, run.step);
  result = train_step(run, run.step, health.bounds ? &health : nullptr);
  const bool bad = result.bad.item<bool>();
  if (run.finite.must_stop(bad)) return true;
  if (bad) report.skipped(run, run.step, result);
  const bool last = run.step + 1 == run.steps;
  if (report.due(run.step) || health.bounds || last) report.step(run, run.step, result, health);
  ++run.step;
  return false;
}

}  // namespace

LoopResult train(Run& run, Report& report, Saves& saves) try {
  double evaluating = 0;
  run.begin_prefetch(run.step);
  while (true) {
    if (evaluation_due(run)) evaluating = evaluate_and_report(run, report);
    if (run.steps > 0 && run.step >= run.steps) return {Ending::finished, run.step, {}};
    stop_here();
    if (saves.stop_wanted()) return {Ending::stopped, run.step, {}};
    saves.look(run, report);

    // A save may be under way when the last one begins.
    if (run.config.time && run.since_start.seconds() + evaluating + 2 * saves.seconds() > *run.config.time) {
      if (run.step > 0 && run.evaluated != run.step) evaluate_and_report(run, report);
      return {Ending::out_of_time, run.step, {}};
    }
    StepResult result;
    if (step_and_report(run, report, result)) return {Ending::bad_numbers, run.step, bad_numbers(run, result)};
  }
} catch (const Stopped&) {  // also from where data are read: then no step was begun
  return {Ending::stopped, run.step, {}};
}

}  // namespace quell
