// When a run is saved, and what is said of it.
#pragma once

#include <map>
#include <string>

#include "checkpoint/saver.h"
#include "train/folder.h"
#include "train/report.h"
#include "train/run.h"

namespace quell {

// On a rank that keeps no folder nothing is saved, and nothing is looked for.
class Saves {
 public:
  // `resumed`: the step of the checkpoint that the run goes on from, which need not be saved again; -1 where there is none.
  Saves(RunFolder& folder, const RunConfig& config, int64_t resumed = -1);

  // Between steps: tells what became of the save under way, and begins one where it is due or the file SAVE is in the run's folder,
  // which is then removed. Throws MachineError where a save failed and checkpoint.on_save_error is stop.
  void look(const Run& run, Report& report);
  // Saves and waits: at the end, and where the run is stopped. Throws MachineError where it cannot.
  void now(const Run& run, Report& report);

  // Whether the file STOP is in the run's folder; it is removed then. One that was there before the start is removed at once.
  bool stop_wanted() const;

  // For the save under way, and tells what became of it.
  void wait(Report& report);

  // How long stopping may take: the longest save so far.
  double seconds() const { return longest_; }

 private:
  void begin(const Run& run, Report& report);
  void tell(Report& report, const SaveResult& result);
  void obey(Report& report, const SaveResult& result);  // tells, and throws where a failure is to stop the run
  Manifest manifest_of(const Run& run, const Report& report) const;

  RunFolder& folder_;
  CheckpointConfig config_;
  Saver saver_;
  int64_t saved_, begun_;  // the steps of the last save that succeeded, and of the last one that began
  double longest_ = 0;
};

}  // namespace quell
