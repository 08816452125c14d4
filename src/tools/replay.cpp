#include "tools/replay.h"

#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "tools/run_files.h"
#include "train/data_record.h"
#include "train/health.h"
#include "train/metrics.h"
#include "train/resume.h"
#include "train/session.h"
#include "train/start.h"
#include "train/step.h"

namespace quell {
namespace {

Json recorded_row(const std::string& run, int64_t step) {
  const std::string path = require_file(run, "metrics.jsonl", "metrics");
  std::istringstream lines(files::read(path));
  for (std::string line; std::getline(lines, line);) {
    Json row = parse_json(line, path);
    if (row.value("step", int64_t{-1}) == step && row.contains("grad_norm")) return row;
  }
  throw UsageError(cat("--step ", step, ": ", path, " has no row of that step (report.every says which have one)"));
}

Checkpoint before(const std::string& run, int64_t step) {
  const std::string folder = run + "/checkpoints";
  std::string passed;
  const std::vector<Entry> entries = list_checkpoints(folder);
  for (size_t i = entries.size(); i-- > 0;) {
    if (entries[i].step >= step) continue;
    try {
      return open_checkpoint(entries[i].path, Verify::full);
    } catch (const Error& problem) {
      passed += cat("\n  ", problem.what());
    }
  }
  throw CheckpointError(cat(folder, ": holds no sound checkpoint before step ", step, "; checkpoint.keep_every keeps some for ever", passed));
}

// A row as it would be written, whose numbers are compared as they are read.
Json as_written(const Json& row) { return parse_json(row.dump(), "row"); }

}  // namespace

Answer replay(const std::string& folder, int64_t step) {
  const Json recorded = recorded_row(folder, step);
  const RunConfig config = config_of_run(folder);
  const Checkpoint from = before(folder, step);
  prepare_process(config);
  Run run(config, {.overfit = from.manifest.integers.at("run.overfit"), .progress = scanning()});
  require_same_data(run, from.manifest.data, data_record(run));
  restore(run, from);
  run.begin_prefetch(run.step);
  StepResult result;
  HealthSums health;
  for (; run.step < step; ++run.step) {
    health = run.step + 1 == step ? health_wanted(run, run.step) : HealthSums();
    result = train_step(run, run.step, health.bounds ? &health : nullptr);
  }
  std::optional<HealthReport> measured;
  if (health.bounds) measured = report_of(health, run.world);
  const Json again = as_written(step_row(run, step - 1, result, measured ? &*measured : nullptr));

  Answer answer{cat("step ", step, " again, from ", from.path, "\n"), Json{{"step", step}, {"from", from.path}, {"differ", Json::object()}}};
  for (const auto& [key, value] : again.items()) {
    if (recorded.contains(key) && recorded[key] == value) continue;
    const std::string was = recorded.contains(key) ? recorded[key].dump() : "not there";
    answer.text += cat("  ", key, ": ", was, " recorded, ", value.dump(), " now\n");
    answer.json["differ"][key] = {was, value.dump()};
    answer.yes = false;
  }
  answer.json["same"] = answer.yes;
  answer.text += answer.yes ? cat("all ", again.size(), " numbers are those that were recorded: what happened there follows from data and weights (persistent)\n")
                            : "not what was recorded: it does not come again (transient), or the program, threads or machine type are others\n";
  return answer;
}

}  // namespace quell
