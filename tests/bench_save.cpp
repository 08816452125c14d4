// What a save costs the training beside it: what the loop waits for where a save begins, against a memory copy of the same bytes, and a
// step with a save under way against one without. Interleaved in one process; scripts/save_cost runs it. Not a test:
// `build/release/bench_save FILE [ROUNDS [key=value...]]`, FILE a run file; its folder is made in the temporary folder and removed.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "checkpoint/saver.h"
#include "config/load.h"
#include "config/print.h"
#include "temporary.h"
#include "train/resume.h"
#include "train/start.h"
#include "train/step.h"

namespace quell {
namespace {

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Of as many bytes as a save stages, both sides resident.
class PlainCopy {
 public:
  explicit PlainCopy(uint64_t bytes) : from_(bytes, 1), to_(bytes, 2) {}
  double seconds() {
    const Timer timer;
    std::memcpy(to_.data(), from_.data(), from_.size());
    return timer.seconds();
  }

 private:
  std::vector<char> from_, to_;
};

double step(Run& run) {
  const Timer timer;
  train_step(run, run.step, nullptr).bad.item<bool>();
  ++run.step;
  return timer.seconds();
}

// As train/saves begins one.
double begin_save(Saver& saver, const Run& run, const Report& report, RunFolder& folder) {
  const Timer timer;
  Manifest manifest;
  manifest.step = run.step;
  manifest.save = unique_id();
  manifest.run = folder.id();
  manifest.config = config::print(run.config);
  manifest.data = folder.data();
  saver.begin(state_of(run, report), std::move(manifest), [&] { folder.sync_metrics(); });
  return timer.seconds();
}

void measure(RunConfig config, int rounds) {
  const testing::TemporaryFolder home;
  config.steps = 1'000'000;
  prepare_process(config);
  log::set_quiet(true);
  Run run(config, {});
  RunFolder folder(FolderLock(home / "run", false), run);
  Report report(folder, run.config, {.peak_flops = 0, .quiet = true});
  Saver saver(folder.checkpoints(), run.config.checkpoint);
  run.begin_prefetch(0);
  for (int i = 0; i < 3; ++i) step(run);
  const double first = begin_save(saver, run, report, folder);
  saver.result(/*wait=*/true);

  uint64_t bytes = 0;
  for (const auto& [name, tensor] : state_of(run, report).tensors) bytes += tensor.nbytes();
  PlainCopy copy(bytes);
  std::vector<double> begins, copies, plain, beside, lengths, begin_ratios, step_ratios;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> without, with;
    for (int i = 0; i < 6; ++i) without.push_back(step(run));
    copies.push_back(copy.seconds());
    begins.push_back(begin_save(saver, run, report, folder));
    begin_ratios.push_back(begins.back() / copies.back());
    std::optional<SaveResult> ended;
    for (; !ended; ended = saver.result(/*wait=*/false)) with.push_back(step(run));
    if (!ended->problem.empty()) throw MachineError(ended->problem);
    if (with.size() > 1) with.pop_back();  // only a part of it was beside the save
    lengths.push_back(ended->seconds);
    plain.push_back(median(without));
    beside.push_back(median(with));
    step_ratios.push_back(beside.back() / plain.back());
    std::printf("round %2d: begins in %.1f ms, a copy takes %.1f ms: %.2f; a step %.1f ms, beside a save %.1f ms (%zu steps): %.2f\n", round + 1,
                1e3 * begins.back(), 1e3 * copies.back(), begin_ratios.back(), 1e3 * plain.back(), 1e3 * beside.back(), with.size(), step_ratios.back());
    std::fflush(stdout);
  }
  std::printf("%.0f MB of state; the first save began in %.1f ms (its memory is fresh)\n", static_cast<double>(bytes) / 1e6, 1e3 * first);
  std::printf("median of %d rounds: the loop waits %.1f ms, %.2f x a memory copy; a step beside a save takes %.2f x one without; a save %.2f s\n",
              rounds, 1e3 * median(begins), median(begin_ratios), median(step_ratios), median(lengths));
}

}  // namespace
}  // namespace quell

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::vector<quell::config::Override> overrides;
  for (int i = 3; i < argc; ++i) overrides.push_back({argv[i], false});
  quell::measure(quell::config::load<quell::RunConfig>(quell::config::Source::from_file(argv[1], overrides)), argc > 2 ? std::atoi(argv[2]) : 7);
}
