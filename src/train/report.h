// What a run tells: rows of metrics.jsonl (the primary log), and from the same numbers the console: on a terminal one live line,
// elsewhere a plain line a report. Reads numbers from the device only here.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "stability/health.h"
#include "train/console.h"
#include "train/evaluate.h"
#include "train/folder.h"
#include "train/step.h"

namespace quell {

struct ReportOptions {
  double peak_flops = 0;  // of the probe at start; 0: no share of it is shown
  bool quiet = false;
};

class Report {
 public:
  Report(RunFolder& folder, const RunConfig& config, const ReportOptions& options);

  bool due(int64_t step) const;
  void step(const Run& run, int64_t step, const StepResult& result, const HealthSums& health);
  void skipped(const Run& run, int64_t step, const StepResult& result);
  // After `done` steps; the evaluation took `seconds`. `each` is called with every token of a sample.
  void evaluation(const Run& run, int64_t done, const std::vector<Evaluation>& results, double seconds,
                  const std::function<void(int64_t)>& each = {});

  // Lines of others, above the live line.
  void say(const std::string& text) { console_.say(text); }
  void warn(const std::string& text) { console_.warn(text); }

  // The finite numbers of the last evaluation by their names in metrics.jsonl.
  const std::map<std::string, double>& last_evaluation() const { return last_evaluation_; }

  // Where the metrics end, how long the run has taken, what has been warned of.
  State state() const;
  // Rows behind the stored end are set aside (see RunFolder).
  void restore(const State& stored);

 private:
  double seconds() const { return earlier_seconds_ + since_start_.seconds(); }

  RunFolder& folder_;
  RunConfig config_;
  ReportOptions options_;
  Console console_;
  HealthAlarms alarms_;
  double earlier_seconds_ = 0;  // before the run was resumed
  Timer since_start_;
  std::map<std::string, double> last_evaluation_;
  double excluded_seconds_ = 0;  // of evaluations and their reports: not training
  double last_seconds_ = 0;
  int64_t last_step_ = -1;
  bool warned_of_no_gradient_ = false;
};

}  // namespace quell
