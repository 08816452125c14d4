#include "train/resume.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "config/load.h"
#include "tensors/switches.h"
#include "train/changes.h"

namespace quell {
namespace {

void warn(const std::string& text) { log::warn(text); }

// That of a run, or one in which a run began and left nothing.
bool is_run_folder(const std::string& folder) {
  if (files::exists(folder + "/run.json") || !list_checkpoints(folder + "/checkpoints").empty()) return true;
  const std::vector<std::string> names = files::list(folder);
  const auto is_first = [](const std::string& name) { return name == "lock" || name == "log.txt" || name.starts_with("run.json.tmp-"); };
  return std::all_of(names.begin(), names.end(), is_first);
}

Beginning go_on(const std::string& folder, bool must) {
  if (!is_run_folder(folder)) throw UsageError(folder + ": is no run's folder (there is no run.json), so nothing is written into it; choose another --run DIR");
  Beginning beginning{folder, FolderLock(folder, true), {}, run_id_of(folder)};
  const std::string checkpoints = folder + "/checkpoints";
  remove_leftovers(checkpoints, warn);
  beginning.from = newest_sound(checkpoints, beginning.id, warn);
  if (beginning.from) {
    beginning.id = beginning.from->manifest.run;
    return beginning;
  }
  // To begin anew is right only where nothing would be lost.
  if (must) throw CheckpointError(checkpoints + ": holds no checkpoint to go on from; resume: auto begins anew where there is none");
  if (!list_checkpoints(checkpoints).empty()) {
    throw CheckpointError(checkpoints + ": holds checkpoints, but none that is sound and of this run, as said above; move them away to begin anew");
  }
  if (files::exists(folder + "/weights.safetensors")) {
    throw UsageError(folder + ": holds a run's weights but no checkpoint to go on from, and they are not written over; choose another --run DIR");
  }
  return beginning;
}

Checkpoint from_path(const std::string& path) {
  if (files::is_folder(path + "/checkpoints")) {
    auto newest = newest_sound(path + "/checkpoints", run_id_of(path), warn);
    if (!newest) throw CheckpointError(path + "/checkpoints: holds no checkpoint to go on from");
    return std::move(*newest);
  }
  if (const std::vector<Entry> inside = list_checkpoints(path); !inside.empty()) {
    throw CheckpointError(cat(path, ": holds checkpoints and is none; give the run's folder, or one of them, like ", inside.back().path));
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

void require_fit(const std::vector<std::string>& problems, const Checkpoint& from) {
  if (!problems.empty()) throw CheckpointError(cat(from.path, ": does not fit this run:\n  ", join(problems, "\n  ")));
}

}  // namespace

Beginning begin_run(const std::string& resume, const std::string& folder) {
  if (resume == "must" || (resume == "auto" && files::exists(folder))) {
    if (!files::is_folder(folder)) throw CheckpointError(folder + ": no such folder, so there is no run to go on with");
    return go_on(folder, resume == "must");
  }
  if (files::exists(folder)) {
    throw UsageError(folder_is_taken(folder));
  }
  Beginning beginning{folder, {}, {}, ""};
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

State state_of(const Run& run) {
  State all = model_state(run);
  add_part(all, "finite", run.finite.state());
  add_part(all, "run", place_of(run));
  return all;
}

State state_of(const Run& run, const Report& report) {
  State all = state_of(run);
  add_part(all, "report", report.state());
  return all;
}

void set_state(Run& run, const State& stored) {
  copy_tensors(weights_state(run), part_of(stored, "weights"));
  run.arena.refresh_compute();
  run.optimizer.restore(part_of(stored, "optimizer"));
  if (run.ema) run.ema->restore(run.parameters, part_of(stored, "ema"));
  run.finite.restore(part_of(stored, "finite"));
  run.step = stored.integers.at("run.step");
  run.evaluated = stored.integers.at("run.evaluated");
}

void restore(Run& run, const Checkpoint& from) {
  const State stored = from.state();
  std::vector<std::string> problems;
  add_misfits(problems, "weights", weights_state(run), stored);
  add_misfits(problems, "optimizer", run.optimizer.state(), stored);
  if (run.ema) add_misfits(problems, "ema", run.ema->state(run.parameters), stored);
  add_misfits(problems, "finite", run.finite.state(), stored);
  add_misfits(problems, "run", place_of(run), stored);
  require_fit(problems, from);
  if (stored.integers.at("run.position") != stored.integers.at("run.step") * run.batch) {
    throw CheckpointError(from.path + ": its position in the data is not that of its step");
  }
  if (const int64_t overfit = stored.integers.at("run.overfit"); overfit != run.overfit) {
    throw UsageError(cat("--overfit ", run.overfit, ": this run was begun with --overfit ", overfit, " (0: on all samples)"));
  }
  set_state(run, stored);
}

void restore(Report& report, const Checkpoint& from) {
  const State stored{{}, from.manifest.integers, from.manifest.numbers};
  std::vector<std::string> problems;
  add_misfits(problems, "report", of_report(report.state()), stored);
  require_fit(problems, from);
  try {
    report.restore(part_of(stored, "report"));
  } catch (const std::out_of_range&) {
    throw CheckpointError(from.path + ": its report.alarms are incomplete");
  }
}

std::vector<std::string> require_same_run(const Run& run, const Json& data, const Checkpoint& from, const std::vector<std::string>& accepted) {
  const auto before = config::load<RunConfig>(config::Source::from_text(from.manifest.config, cat(from.path, "/", manifest_name)));
  std::vector<Change> found = changes(before, run.config);
  const std::string libtorch = libtorch_description();
  if (libtorch == from.manifest.libtorch) {
    for (Change& change : found) {
      if (change.key == "threads") change.kind = ChangeKind::safe;  // another spelling of as many
    }
  } else {
    log::warn(cat("goes on with libtorch ", libtorch, ", was ", from.manifest.libtorch, ": sums may be rounded otherwise from here on"));
  }
  if (run.world.size() != from.manifest.world) {
    log::warn(cat("goes on with ", run.world.size(), " ranks, was ", from.manifest.world, ": the samples are the same, and sums are rounded otherwise"));
  }
  // First: a vocabulary or number of classes that is left to the data changes with them, and is not what the user has to mend. Data of
  // another kind cannot be compared, and are refused by their key.
  if (before.data.index() == run.config.data.index()) require_same_data(run, from.manifest.data, data);
  require_accepted(found, accepted);
  const int64_t step = from.manifest.step;
  if (run.steps > 0 && step > run.steps) {
    throw UsageError(cat("steps: the plan of ", run.steps, " ends before step ", step, ", from which this run goes on"));
  }
  return change_lines(found);
}

}  // namespace quell
