#include "train/session.h"

#include <new>

#include "base/log.h"
#include "base/machine.h"
#include "base/signals.h"
#include "base/text.h"
#include "tensors/memory.h"
#include "train/loop.h"
#include "train/memory.h"
#include "train/start.h"

namespace quell {
namespace {

// Samples that were skipped are not passed over in silence.
void warn_of_broken(const Run& run) {
  std::vector<std::string> texts{broken_text(run.source)};
  for (const EvaluationData& set : run.evaluations) texts.push_back(broken_text(set.data));
  for (const std::string& text : texts) {
    if (!text.empty()) log::warn(text);
  }
}

int dry_run(Run& run) {
  train_step(run, 0, nullptr);
  const Timer timer;  // the first step pays for fresh memory
  train_step(run, 1, nullptr);
  const double seconds = timer.seconds();
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

int finish(Run& run, const RunFolder& folder, const LoopResult& result) {
  if (result.ending == Ending::bad_numbers) throw NumericsError(cat(result.what, "; ", keep_weights(run, folder)));
  folder.save_weights(run, result.steps);
  const std::string where = folder.path() + "/weights.safetensors";
  if (result.ending == Ending::stopped) {
    log::warn(cat("stopped on request after step ", result.steps, "; the weights are in ", where));
    return 128 + signals::which();
  }
  const char* why = result.ending == Ending::out_of_time ? "time is up" : "finished";
  log::info(cat(why, " after step ", result.steps, "; the weights are in ", where));
  return static_cast<int>(Exit::finished);
}

int train_in_memory(const RunConfig& config, const TrainOptions& options, int threads) {
  const double peak_flops = probe_matrix_products();
  Run run(config, {.overfit = options.overfit, .progress = scanning()});
  for (const std::string& line : start_block(run, threads, peak_flops)) log::info(line);
  if (options.dry_run) return dry_run(run);
  RunFolder folder(options.folder.empty() ? "runs/" + config.name : options.folder, run);
  log::info("run         " + folder.path());
  signals::install();  // not before: until here nothing is lost by ending at once
  LoopResult result;
  try {
    Report report(folder, run.config, {.peak_flops = peak_flops, .quiet = options.quiet});
    result = train(run, report);
  } catch (const MachineError& problem) {  // the log cannot be written: a full disk
    throw MachineError(cat(problem.what(), "; ", keep_weights(run, folder)));
  } catch (const DataError& problem) {  // a token that no window had reached before
    throw DataError(cat(problem.what(), "; ", keep_weights(run, folder)));
  }
  warn_of_broken(run);
  return finish(run, folder, result);
}

}  // namespace

Progress scanning() {
  Progress progress;
  progress.report = [](const std::string& what, uint64_t done, uint64_t total) {
    const bool classes = what.starts_with("listing ");  // what is scanned else is counted in bytes
    log::info(classes ? cat(what, ": ", done, " of ", total, " classes")
                      : cat(what, ": ", human_bytes(static_cast<double>(done)), " of ", human_bytes(static_cast<double>(total))));
  };
  progress.on_note = [](const std::string& line) { log::warn(line); };
  return progress;
}

int run_training(const RunConfig& config, const TrainOptions& options) {
  log::set_quiet(options.quiet);
  const int threads = prepare_process(config);
  try {
    return train_in_memory(config, options, threads);
  } catch (const c10::OutOfMemoryError&) {
    throw MachineError(out_of_memory_message(config, outputs_of(config)));
  } catch (const std::bad_alloc&) {
    throw MachineError(out_of_memory_message(config, outputs_of(config)));
  }
}

}  // namespace quell
