// What the tests of resumed runs share: a start as a session makes it, and what must be equal at the end.
#pragma once

#include <catch2/catch.hpp>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cases.h"
#include "checkpoint/folder.h"
#include "train/loop.h"
#include "train/resume.h"
#include "train_support.h"

namespace quell::testing {

// One start of a run, as a session makes it.
inline LoopResult start(RunConfig config, const std::string& folder_path, const std::string& resume, const std::vector<std::string>& accept = {}) {
  config.resume = resume;
  Beginning beginning = begin_run(resume, folder_path);
  Run run(config, {});
  if (beginning.from) require_same_run(run, data_record(run), *beginning.from, accept);
  if (beginning.from) restore(run, *beginning.from);
  RunFolder folder(beginning.lock ? std::move(*beginning.lock) : FolderLock(folder_path, false), run, beginning.id);
  Report report(folder, run.config, {.peak_flops = 0, .quiet = true});
  if (beginning.from) restore(report, *beginning.from);
  Saves saves(folder, run.config);
  const LoopResult result = train(run, report, saves);
  saves.now(run, report);
  return result;
}

// Rows without the clock.
inline std::vector<Json> rows_of(const std::string& folder) {
  std::vector<Json> rows;
  std::istringstream lines(files::read(folder + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    Json row = parse_json(line, folder);
    for (const char* clock : {"time", "tokens_per_s", "images_per_s"}) row.erase(clock);
    rows.push_back(row);
  }
  return rows;
}

// Of the newest checkpoint: its tensors' digests, and its numbers but for the clock and the length of the metrics, which holds it.
inline std::string content_of(const std::string& folder) {
  const auto newest = newest_sound(folder + "/checkpoints", "", [](const std::string&) {});
  REQUIRE(newest);
  std::string text = newest->manifest.content_digest();
  for (const auto& [name, value] : newest->manifest.integers) {
    if (name != "report.metrics_bytes") text += cat("\n", name, " ", value);
  }
  for (const auto& [name, value] : newest->manifest.numbers) {
    if (name != "report.seconds") text += cat("\n", name, " ", value);
  }
  return text;
}

inline void leave_until(const std::string& folder, int64_t step) {
  for (const Entry& entry : list_checkpoints(folder + "/checkpoints")) {
    if (entry.step > step) std::filesystem::remove_all(entry.path);
  }
}

// A run of 24 steps that saves after each, with what has state: accumulation, epochs that end inside, dropout, an average,
// evaluations, health.
inline RunConfig busy(RunConfig config) {
  config.steps = 24;
  config.micro_batches = 2;
  config.evaluate.every = 5;
  config.health = {.every = 3, .entropy_every = 6};
  config.loss.z = 1e-3;
  config.ema = 0.9;
  config.optimizer.schedule.warmup = 6;
  config.checkpoint.every = 1;
  config.checkpoint.keep_last = 1000;
  config.checkpoint.verify = Verify::sizes;
  return config;
}

// Starts again from each of `steps` in a copy of the straight run's folder that ends there.
inline void resumes_exactly(const RunConfig& config, const TemporaryFolder& home, const std::vector<int64_t>& steps, Cases& cases) {
  const std::string straight = home / "straight";
  start(config, straight, "never");
  const std::vector<Json> rows = rows_of(straight);
  const std::string content = content_of(straight);
  REQUIRE(list_checkpoints(straight + "/checkpoints").size() == static_cast<size_t>(*config.steps));
  RunConfig rest = config;
  rest.checkpoint.every = 0;  // what is compared is saved at the end; no number depends on it
  for (const int64_t step : steps) {
    CAPTURE(step);
    const std::string again = home / cat("again", step);
    std::filesystem::copy(straight, again, std::filesystem::copy_options::recursive);
    leave_until(again, step);
    CHECK(start(rest, again, "must").steps == *config.steps);
    CHECK(rows_of(again) == rows);
    CHECK(content_of(again) == content);
    std::filesystem::remove_all(again);
    cases.add();
  }
  std::filesystem::remove_all(straight);
}

}  // namespace quell::testing
