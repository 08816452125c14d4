#include "train/loop.h"

#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "dist/agreement.h"
#include "dist/same.h"
#include "train/evaluate.h"
#include "train/health.h"
#include "train/resume.h"
#include "train/step.h"

namespace quell {
namespace {

bool evaluation_due(const Run& run) {
  const int64_t every = run.config.evaluate.every;
  const bool wanted = run.step == 0 || run.step == run.steps || (every > 0 && run.step % every == 0);
  return wanted && run.evaluated != run.step;
}

std::string bad_numbers(Run& run, const StepResult& result) {
  const std::string what = cat("step ", run.step + 1, ": the loss is ", result.totals.objective(), " and the gradient's norm ",
                               result.norm.item<double>());
  std::string here;
  together(run.world, [&] { here = first_bad_tensor(run, run.step); });
  const World::Said first = run.world.first_said(here);
  const std::string found = first.rank < 0 ? "none when computed again (an overflow in the sum over micro-batches or ranks, or a hardware fault)"
                                           : cat(first.text, run.world.size() > 1 ? cat(", on rank ", first.rank) : "");
  return cat(what, "; the first tensor that is not finite is ", found, "; samples ", run.step * run.batch, " to ",
             (run.step + 1) * run.batch - 1, "; bad steps in a row: ", run.finite.in_a_row(), ", none of which changed a weight");
}

// The seconds it took. A stop ends it on all ranks, and nothing of it is reported then; while text is generated only the rank that writes
// decides, since what it has written is done.
double evaluate_and_report(Run& run, Report& report) {
  signals::set_place("evaluation", run.step);
  const Timer timer;
  const std::vector<Evaluation> results = evaluate(run, {.must_stop = signals::stop_requested});
  signals::set_place("generation", run.step);
  const Attempt telling([&] {
    report.evaluation(run, run.step, results, timer.seconds(), [&](int64_t) {
      signals::set_place("generation", run.step);
      if (run.world.is_first() && signals::stop_requested()) throw Stopped();
    });
  });
  telling.settle(run.world);
  run.evaluated = run.step;
  return timer.seconds();
}

// Before anything of a step is saved: what differs between ranks is not to spoil the checkpoints too.
void require_same_ranks(const Run& run, bool is_last) {
  const int64_t every = run.config.parallel.verify_every;
  if (every == 0 || run.step == 0 || (!is_last && run.step % every != 0)) return;
  if (const auto difference = first_difference(run.world, model_state(run))) {
    throw NumericsError(cat(text_of(*difference), ", found after step ", run.step, " (parallel.verify_every: ", every,
                            "): a machine's memory or processor is at fault; go on elsewhere, from the newest checkpoint"));
  }
}

// One step with what is measured and said of it. Whether the run must end.
bool step_and_report(Run& run, Report& report, StepResult& result, const Asked& asked) {
  signals::set_place("step", run.step);
  HealthSums health = health_wanted(run, run.step);
  result = train_step(run, run.step, health.bounds ? &health : nullptr, asked);
  const bool bad = result.bad.item<bool>(), last = run.step + 1 == run.steps;
  const bool is_told = report.due(run.step) || health.bounds || last;
  if (is_told || bad) result.totals.reduce(run.world);
  if (run.finite.must_stop(bad)) return true;
  if (bad) report.skipped(run, run.step, result);
  if (is_told) report.step(run, run.step, result, health);
  ++run.step;
  return false;
}

}  // namespace

LoopResult train(Run& run, Report& report, Saves& saves) try {
  double evaluating = 0;
  const auto asked = [&]() -> Wishes {
    // A save may be under way when the last one begins.
    const double needed = run.since_start.seconds() + evaluating + 2 * saves.seconds();
    return {.stop = saves.stop_wanted() || signals::stop_requested(), .time_is_up = run.config.time && needed > *run.config.time};
  };
  run.begin_prefetch(run.step);
  Wishes wishes = agree(run.world, asked());
  while (true) {
    if (evaluation_due(run)) {
      evaluating = evaluate_and_report(run, report);
      const Wishes later = agree(run.world, asked());
      wishes = {.stop = wishes.stop || later.stop, .time_is_up = later.time_is_up};  // a file that asked for a stop is gone by now
    }
    const bool is_done = run.steps > 0 && run.step >= run.steps;
    require_same_ranks(run, is_done || wishes.stop || wishes.time_is_up);
    if (is_done) return {Ending::finished, run.step, {}};
    if (wishes.stop) return {Ending::stopped, run.step, {}};
    saves.look(run, report);
    if (wishes.time_is_up) {
      if (run.step > 0 && run.evaluated != run.step) evaluate_and_report(run, report);
      return {Ending::out_of_time, run.step, {}};
    }
    StepResult result;
    if (step_and_report(run, report, result, asked)) return {Ending::bad_numbers, run.step, bad_numbers(run, result)};
    wishes = result.wishes;
  }
} catch (const Stopped&) {  // also from where data are read: then no step was begun
  return {Ending::stopped, run.step, {}};
}

}  // namespace quell
