#include "train/saves.h"

#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/signals.h"
#include "base/text.h"
#include "config/print.h"
#include "tensors/switches.h"
#include "train/resume.h"

namespace quell {

Saves::Saves(RunFolder& folder, const RunConfig& config, int64_t resumed)
    : folder_(folder), config_(config.checkpoint), saver_(folder.is_kept() ? folder.checkpoints() : "", config.checkpoint, resumed), saved_(resumed),
      begun_(resumed) {
  stop_wanted();
}

void Saves::look(const Run& run, Report& report) {
  if (!folder_.is_kept()) return;
  if (const auto result = saver_.result(/*wait=*/false)) obey(report, *result);
  const std::string wanted = folder_.path() + "/SAVE";
  const bool asked = files::exists(wanted);
  const bool due = config_.every > 0 && run.step > 0 && run.step % config_.every == 0;
  if ((!due && !asked) || begun_ == run.step) return;
  if (asked) files::remove_all(wanted);
  begin(run, report);
}

void Saves::wait(Report& report) {
  signals::set_place("save", begun_);
  if (const auto result = saver_.result(/*wait=*/true)) tell(report, *result);
}

void Saves::now(const Run& run, Report& report) {
  signals::set_place("save", run.step);
  if (!folder_.is_kept()) return;
  wait(report);
  if (saved_ == run.step) return;
  begin(run, report);
  const SaveResult result = *saver_.result(/*wait=*/true);
  if (result.not_finite) throw NumericsError("checkpoint: " + result.problem + "; a smaller optimizer.lr may help");
  if (result.path.empty()) throw MachineError("checkpoint: " + result.problem);
  tell(report, result);
}

bool Saves::stop_wanted() const {
  if (!folder_.is_kept()) return false;
  const std::string file = folder_.path() + "/STOP";
  if (!files::exists(file)) return false;
  files::remove_all(file);
  return true;
}

void Saves::begin(const Run& run, Report& report) {
  signals::set_place("save", run.step);
  if (const auto result = saver_.result(/*wait=*/true)) obey(report, *result);
  begun_ = run.step;
  saver_.begin(state_of(run, report), manifest_of(run, report), [this] { folder_.sync_metrics(); });
}

void Saves::tell(Report& report, const SaveResult& result) {
  longest_ = std::max(longest_, result.seconds);
  if (result.path.empty()) {
    report.warn(cat("the checkpoint of step ", result.step, " was not saved: ", result.problem, "; the one before it stays the newest"));
    return;
  }
  saved_ = result.step;
  if (!result.problem.empty()) report.warn("older checkpoints could not be removed: " + result.problem);
  report.say(cat("saved       ", result.path, " in ", human_seconds(result.seconds)));
}

void Saves::obey(Report& report, const SaveResult& result) {
  tell(report, result);
  if (result.path.empty() && config_.on_save_error == OnSaveError::stop) throw MachineError("checkpoint: " + result.problem);
}

Manifest Saves::manifest_of(const Run& run, const Report& report) const {
  Manifest manifest;
  manifest.step = run.step;
  manifest.save = unique_id();
  manifest.run = folder_.id();
  manifest.config = config::print(run.config);
  manifest.quell = QUELL_VERSION;
  manifest.libtorch = libtorch_description();
  manifest.world = run.world.size();
  manifest.data = folder_.data();
  if (run.evaluated == run.step) manifest.metrics = report.last_evaluation();  // of these weights, no others
  return manifest;
}

}  // namespace quell
