#include "train/session.h"

#include <cstdlib>
#include <new>

#include "base/log.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/text.h"
#include "dist/agreement.h"
#include "dist/rendezvous.h"
#include "tensors/memory.h"
#include "train/loop.h"
#include "train/memory.h"
#include "train/resume.h"
#include "train/saves.h"
#include "train/share.h"
#include "train/start.h"

namespace quell {
namespace {

// Samples that were skipped are not passed over in silence.
void warn_of_broken(const Run& run) {
  std::vector<std::string> texts{broken_text(run.source)};
  for (const EvaluationData& set : run.evaluations) texts.push_back(broken_text(set.data));
  for (const std::string& text : texts) {
    const World::Said first = run.world.first_said(text);  // each rank counts its own
    if (!first.text.empty()) log::warn(cat(run.world.size() > 1 ? cat("rank ", first.rank, ", perhaps others: ") : "", first.text));
  }
}

int dry_run(Run& run) {
  train_step(run, 0, nullptr);
  const Timer timer;  // the first step pays for fresh memory
  train_step(run, 1, nullptr);
  const double seconds = timer.seconds();
  Staging staging;
  staging.take(model_state(run));  // as every run does once, which counts in its memory
  log::info(cat("one step    ", human_seconds(seconds), ", ", human_count(static_cast<double>(run.items_per_step()) / seconds),
                " ", run.items(), "/s"));
  if (run.steps > 0) log::info("all steps   about " + human_seconds(seconds * static_cast<double>(run.steps)) + " without evaluations");
  const std::vector<MemoryClass> classes = memory_classes(run.config, outputs_of(run.config));
  log::info(cat("memory      ", human_bytes(static_cast<double>(machine::peak_resident_bytes())), " at the peak; by formula ", human_bytes(total_of(classes)), ":"));
  for (const MemoryClass& c : classes) {
    if (c.bytes > 0) log::info(cat("              ", c.name, " ", human_bytes(c.bytes)));
  }
  return 0;
}

// What an error that ends a run says of the weights: saved where they are worth it. Not being able to is not the news then.
std::string keep_weights(Run& run, const RunFolder& folder) {
  const int64_t updates = run.optimizer.updates();
  for (const Parameter& parameter : run.parameters) {
    if (!at::isfinite(parameter.value).all().item<bool>()) {
      return cat("update ", updates, " left ", parameter.name, " not finite, so no weights were saved; a smaller optimizer.lr may help");
    }
  }
  try {
    folder.save_weights(run, updates);
    return cat("the weights after ", updates, " updates are in ", folder.path(), "/weights.safetensors");
  } catch (const MachineError& problem) {
    return cat("the weights after ", updates, " updates were not saved: ", problem.what());
  }
}

int stop_code(const RunConfig& config) {
  if (config.stop_code) return static_cast<int>(*config.stop_code);
  // torchrun starts again whatever does not end with 0; our own launcher knows better.
  const bool is_torchruns = std::getenv("TORCHELASTIC_RUN_ID") != nullptr && std::getenv("QUELL_BEATS_FD") == nullptr;
  return is_torchruns ? 0 : static_cast<int>(Exit::stopped);
}

int stopped(Run& run, const RunFolder& folder, const std::string& why) {
  try {
    folder.save_weights(run, run.step);
  } catch (const MachineError& problem) {  // the checkpoint has them too
    log::warn(problem.what());
  }
  log::warn(cat(why, " after step ", run.step, "; run again with --resume to go on, with the same overrides"));
  return stop_code(run.config);
}

int finish(Run& run, Report& report, Saves& saves, const RunFolder& folder, const LoopResult& result) {
  if (result.ending == Ending::bad_numbers) {
    saves.wait(report);
    throw NumericsError(cat(result.what, "; ", keep_weights(run, folder)));
  }
  saves.now(run, report);  // first: who stops a run may not wait for long
  if (result.ending == Ending::stopped) return stopped(run, folder, "stopped on request");
  if (result.ending == Ending::out_of_time && run.steps > 0) return stopped(run, folder, "time is up");
  folder.save_weights(run, result.steps);
  const char* why = result.ending == Ending::out_of_time ? "time is up" : "finished";
  log::info(cat(why, " after step ", result.steps, "; the weights are in ", folder.path(), "/weights.safetensors"));
  return static_cast<int>(Exit::finished);
}

// The folder of a run that is built and, where it goes on, is where it was left. Nothing in it is written before all of that holds. Only the
// first rank keeps one.
RunFolder folder_of(Run& run, Beginning& beginning, const TrainOptions& options) {
  if (!run.world.is_first()) return {};
  std::vector<std::string> changed;
  if (beginning.from) {
    changed = require_same_run(run, data_record(run), *beginning.from, options.accept);
    restore(run, *beginning.from);
  }
  RunFolder folder(beginning.lock ? std::move(*beginning.lock) : FolderLock(beginning.folder, false), run, beginning.id);
  for (const std::string& line : changed) log::warn("changed     " + line);
  return folder;
}

void restore_report(const Run& run, Report& report, RunFolder& folder, const Beginning& beginning) {
  if (!folder.is_kept()) return;
  if (beginning.from) {
    restore(report, *beginning.from);
    log::info(cat("resumed     after step ", run.step, " from ", beginning.from->path));
  } else if (!beginning.id.empty()) {
    folder.set_metrics_aside(0);  // of a start that left no checkpoint
  }
}

// What is wrong with the data can be mended, and then the run can go on: they are read between two steps, where its state is whole.
std::string keep_run(Run& run, Report& report, Saves& saves, const RunFolder& folder) {
  try {
    saves.now(run, report);
    return cat("all up to step ", run.step, " is saved: --resume goes on from there");
  } catch (const Error&) {
    return keep_weights(run, folder);
  }
}

// The same on all ranks, once the first one has done it.
std::string kept_text(Run& run, Report& report, Saves& saves, const RunFolder& folder) {
  signals::set_place("save", run.step);
  return run.world.first_said(keep_run(run, report, saves, folder)).text;
}

int train_in_folder(Run& run, Beginning& beginning, RunFolder& folder, double peak_flops, bool quiet) {
  Report report(folder, run.config, {.peak_flops = peak_flops, .quiet = quiet || !run.world.is_first()});
  restore_report(run, report, folder, beginning);
  Saves saves(folder, run.config, beginning.from && !beginning.id.empty() ? run.step : -1);
  beginning.from.reset();  // its files need not stay mapped
  try {
    const LoopResult result = train(run, report, saves);
    warn_of_broken(run);
    int code = 0;
    signals::set_place("save", run.step);
    together(run.world, [&] { code = finish(run, report, saves, folder, result); });  // so that nobody is gone before all is saved
    return code;
  } catch (const UnreadableData& problem) {  // on all ranks; of a disk that may be mended
    throw MachineError(cat(problem.what(), "; ", kept_text(run, report, saves, folder)));
  } catch (const NumericsError&) {  // on all ranks, with the same words
    if (!run.world.is_first()) log::mute();
    throw;
  } catch (const PeerError&) {
    saves.wait(report);  // the save under way need not be lost too
    throw;
  } catch (const MachineError& problem) {  // the log or a checkpoint cannot be written: a full disk
    saves.wait(report);
    throw MachineError(cat(problem.what(), "; ", keep_weights(run, folder)));
  } catch (const DataError& problem) {  // on all ranks; a token that no window had reached before
    throw DataError(cat(problem.what(), "; ", kept_text(run, report, saves, folder)));
  }
}

int train_in_memory(const RunConfig& config, const TrainOptions& options, int threads, const World& world) {
  const std::string path = options.folder.empty() ? "runs/" + config.name : options.folder;
  if (!options.accept.empty() && config.resume == "never") {
    throw UsageError("--accept " + options.accept.front() + ": this run goes on from nothing; give --resume, or leave it out");
  }
  const Timer since_start;
  Beginning beginning;
  together(world, [&] {
    if (world.is_first() && !options.dry_run) beginning = begin_run(config.resume, path);
  });
  const double peak_flops = world.sum_of(probe_matrix_products());  // at the same time, as they will compute
  const bool resumes = world.any(beginning.from.has_value());
  std::optional<Run> built;
  together(world, [&] {
    built.emplace(config, RunOptions{.overfit = options.overfit, .resumes = resumes, .progress = scanning(static_cast<Exit>(stop_code(config))),
                                     .world = world, .since_start = since_start});
  });
  Run& run = *built;
  require_one_run(run);
  for (const std::string& line : start_block(run, threads, peak_flops)) log::info(line);
  if (options.dry_run) return dry_run(run);
  RunFolder folder;
  together(world, [&] { folder = folder_of(run, beginning, options); });
  share_state(run);
  if (folder.is_kept()) log::info("run         " + folder.path());
  return train_in_folder(run, beginning, folder, peak_flops, options.quiet);
}

}  // namespace

Progress scanning(Exit stopped) {
  Progress progress;
  progress.report = [stopped](const std::string& what, uint64_t done, uint64_t total) {
    signals::set_place("start", 0);
    if (signals::stop_requested()) throw Error(stopped, "stopped on request while the data were looked through; nothing was begun");
    const bool classes = what.starts_with("listing ");  // what is scanned else is counted in bytes
    log::info(classes ? cat(what, ": ", done, " of ", total, " classes")
                      : cat(what, ": ", human_bytes(static_cast<double>(done)), " of ", human_bytes(static_cast<double>(total))));
  };
  progress.on_note = [](const std::string& line) { log::warn(line); };
  return progress;
}

namespace {

// Each rank says whom it waits for: the one that is missing cannot.
Joined joined_world(const RunConfig& config, const Membership& membership, const Variables& variables) {
  try {
    return join_world(membership, variables, std::chrono::minutes(10), [&](const std::string& line) {
      signals::set_place("start", 0);
      log::always(membership.rank > 0 ? cat("rank ", membership.rank, ": ", line) : line);
    });
  } catch (const Stopped&) {
    throw Error(static_cast<Exit>(stop_code(config)), "stopped on request while the ranks looked for each other; nothing was begun");
  }
}

}  // namespace

int run_training(const RunConfig& config, const TrainOptions& options) {
  log::set_quiet(options.quiet);
  signals::install();
  if (const char* beats = std::getenv("QUELL_BEATS_FD")) signals::tell_places_to(std::atoi(beats));
  const Variables variables = variables_of_process();
  const Membership membership = membership_of(variables);
  if (membership.rank > 0) log::only_errors();  // what is said of the run the first rank says
  const int threads = prepare_process(config, cores_of(membership));
  const Joined joined = joined_world(config, membership, variables);
  for (const std::string& note : membership.notes) log::warn("environment: " + note);
  if (membership.launcher != "none") log::info(cat("world       ", text_of(membership), joined.text.empty() ? "" : ", ", joined.text));
  try {
    return train_in_memory(config, options, threads, joined.world);
  } catch (const c10::OutOfMemoryError&) {
    throw MachineError(out_of_memory_message(config, outputs_of(config)));
  } catch (const std::bad_alloc&) {
    throw MachineError(out_of_memory_message(config, outputs_of(config)));
  }
}

}  // namespace quell
