#include "train/loop.h"

#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "train/evaluate.h"
#include "train/health.h"
#include "train/step.h"

namespace quell {
namespace {

bool last(const Run& run, int64_t step) { return step + 1 == run.steps; }

bool evaluation_due(const Run& run, int64_t done) {
  const int64_t every = run.config.evaluate.every;
  return done == run.steps || (every > 0 && done % every == 0);
}

std::string bad_numbers(Run& run, int64_t step, const StepResult& result) {
  const std::string what = cat("step ", step + 1, ": the loss is ", result.totals.objective(), " and the gradient's norm ",
                               result.norm.item<double>());
  return cat(what, "; the first tensor that is not finite is ", first_bad_tensor(run, step), "; bad steps in a row: ",
             run.finite.in_a_row(), ", none of which changed a weight");
}

void evaluate_and_report(Run& run, Report& report, int64_t done) {
  const Timer timer;
  const std::vector<Evaluation> results = evaluate(run);
  report.evaluation(run, done, results, timer.seconds());
}

}  // namespace

LoopResult train(Run& run, Report& report) {
  const Timer timer;
  int64_t step = 0;
  run.begin_prefetch(step);
  evaluate_and_report(run, report, step);
  for (; run.steps == 0 || step < run.steps; ++step) {
    if (signals::stop_requested()) return {Ending::stopped, step, {}};
    if (run.config.time && timer.seconds() > *run.config.time) break;

    HealthSums health = health_wanted(run, step);
    const StepResult result = train_step(run, step, health.bounds ? &health : nullptr);
    const bool bad = result.bad.item<bool>();
    if (run.finite.must_stop(bad)) return {Ending::bad_numbers, step, bad_numbers(run, step, result)};
    if (bad) report.skipped(run, step, result);

    if (report.due(step) || health.bounds || last(run, step)) report.step(run, step, result, health);
    if (evaluation_due(run, step + 1)) evaluate_and_report(run, report, step + 1);
  }
  const bool complete = run.steps > 0 && step == run.steps;
  if (!complete && step > 0 && !evaluation_due(run, step)) evaluate_and_report(run, report, step);
  return {complete ? Ending::finished : Ending::out_of_time, step, {}};
}

}  // namespace quell
