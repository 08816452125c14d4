#include "train/resume.h"

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "config/load.h"
#include "train/changes.h"

namespace quell {
namespace {

void warn(const std::string& text) { log::warn(text); }

std::string id_of(const std::string& folder) {
  const std::string path = folder + "/run.json";
  if (!files::exists(path)) return "";
  return parse_json(files::read(path, 1 << 16), path).value("run", "");
}

Beginning go_on(const std::string& folder, bool must) {
  Beginning beginning{folder, FolderLock(folder, true), {}};
  const std::string checkpoints = folder + "/checkpoints";
  remove_leftovers(checkpoints, warn);
  beginning.from = newest_sound(checkpoints, id_of(folder), warn);
  if (!beginning.from && must) {
    throw CheckpointError(checkpoints + ": holds no checkpoint to go on from; resume: auto begins anew where there is none");
  }
  return beginning;
}

Checkpoint from_path(const std::string& path) {
  if (files::is_folder(path + "/checkpoints")) {
    auto newest = newest_sound(path + "/checkpoints", "", warn);
    if (!newest) throw CheckpointError(path + "/checkpoints: holds no checkpoint to go on from");
    return std::move(*newest);
  }
  return open_checkpoint(path, Verify::full);
}

State weights_state(const Run& run) {
  State state;
  for (const Parameter& parameter : run.parameters) state.tensors[parameter.name] = parameter.value.detach();
  return state;
}

State place_of(const Run& run) {
  return {{}, {{"step", run.step}, {"position", run.step * run.batch}, {"evaluated", run.evaluated}, {"overfit", run.overfit}}, {}};
}

// Of what grows with the run only what is always there.
State of_report(State state) {
  const auto grows = [](const auto& entry) { return entry.first.starts_with("alarms.") || entry.first.starts_with("last."); };
  std::erase_if(state.integers, grows);
  std::erase_if(state.numbers, grows);
  return state;
}

// One of a checkpoint's parts against what is there now.
void add_misfits(std::vector<std::string>& problems, const std::string& part, const State& live, const State& stored) {
  for (const std::string& problem : misfits(live, part == "report" ? of_report(part_of(stored, part)) : part_of(stored, part))) problems.push_back(cat(part, ": ", problem));
}

}  // namespace

Beginning begin_run(const std::string& resume, const std::string& folder) {
  if (resume == "must" || (resume == "auto" && files::exists(folder))) {
    if (!files::is_folder(folder)) throw CheckpointError(folder + ": no such folder, so there is no run to go on with");
    return go_on(folder, resume == "must");
  }
  if (files::exists(folder)) {
    throw UsageError(folder + ": exists already, and a run never overwrites another; go on with it by --resume, or choose another name or --run DIR");
  }
  Beginning beginning{folder, {}, {}};
  if (resume != "never" && resume != "auto") beginning.from = from_path(resume);
  return beginning;
}

State model_state(const Run& run) {
  State all;
  add_part(all, "weights", weights_state(run));
  add_part(all, "optimizer", run.optimizer.state());
  if (run.ema) add_part(all, "ema", run.ema->state(run.parameters));
  return all;
}

State state_of(const Run& run, const Report& report) {
  State all = model_state(run);
  add_part(all, "finite", run.finite.state());
  add_part(all, "report", report.state());
  add_part(all, "run", place_of(run));
  return all;
}

void restore(Run& run, Report& report, const Checkpoint& from) {
  const State stored = from.state();
  std::vector<std::string> problems;
  add_misfits(problems, "weights", weights_state(run), stored);
  add_misfits(problems, "optimizer", run.optimizer.state(), stored);
  if (run.ema) add_misfits(problems, "ema", run.ema->state(run.parameters), stored);
  add_misfits(problems, "finite", run.finite.state(), stored);
  add_misfits(problems, "report", of_report(report.state()), stored);
  add_misfits(problems, "run", place_of(run), stored);
  if (!problems.empty()) throw CheckpointError(cat(from.path, ": does not fit this run:\n  ", join(problems, "\n  ")));

  if (const int64_t overfit = stored.integers.at("run.overfit"); overfit != run.overfit) {
    throw UsageError(cat("--overfit ", run.overfit, ": this run was begun with --overfit ", overfit, " (0: on all samples)"));
  }
  report.restore(part_of(stored, "report"));
  copy_tensors(weights_state(run), part_of(stored, "weights"));
  run.arena.refresh_compute();
  run.optimizer.restore(part_of(stored, "optimizer"));
  if (run.ema) run.ema->restore(run.parameters, part_of(stored, "ema"));
  run.finite.restore(part_of(stored, "finite"));
  run.step = stored.integers.at("run.step");
  run.evaluated = stored.integers.at("run.evaluated");
}

std::vector<std::string> require_same_run(const Run& run, const Json& data, const Checkpoint& from, const std::vector<std::string>& accepted) {
  const auto before = config::load<RunConfig>(config::Source::from_text(from.manifest.config, cat(from.path, "/", manifest_name)));
  const std::vector<Change> found = changes(before, run.config);
  require_accepted(found, accepted);
  const Json &saved = from.manifest.data.at("train"), &now = data.at("train");
  if (saved.value("digest", "") != now.value("digest", "")) {
    throw DataError(cat(now.value("path", ""), ": is not what this run was begun with: its digest is ", now.value("digest", ""), ", was ",
                        saved.value("digest", ""), " (", saved.value("path", ""), ")"));
  }
  return change_lines(found);
}

}  // namespace quell
