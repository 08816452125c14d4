// Saves a run while it trains: state is copied when a save begins, and written by a thread of its own.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "checkpoint/config.h"
#include "checkpoint/manifest.h"
#include "checkpoint/staging.h"
#include "tensors/state.h"

namespace quell {

struct SaveResult {
  int64_t step = 0;
  std::string path;     // "" where it failed
  std::string problem;  // why; or, with a path, why older ones could not be removed
  bool not_finite = false;  // it failed because a number of the state is not
  double seconds = 0;   // from the copy's end to the last check
};

class Saver {
 public:
  // Checkpoints go into `folder`, which is made at the first save.
  // Checkpoint `verified` is known to be sound: the one that the run goes on from; -1: there is none.
  Saver(std::string folder, const CheckpointConfig& config, int64_t verified = -1) : folder_(std::move(folder)), config_(config) {
    if (verified >= 0) verified_.insert(verified);
  }
  ~Saver();  // waits

  // Copies the state and begins to write it, unless one of its numbers is not finite: nothing can go on from that, and it must not
  // take the place of what can; at most one save is under way, and another one is waited for. `manifest`: all but
  // its files, integers and numbers. `before` runs on the writing thread before the checkpoint appears: what must be on the disk
  // by then. It and the thread call no operator of LibTorch.
  void begin(const State& state, Manifest manifest, std::function<void()> before);

  // What became of the save that has ended since the last call; wait: of the one under way. At most one result is kept, so a
  // result is asked for before the next begin().
  std::optional<SaveResult> result(bool wait);

  uint64_t staged_bytes() const { return staging_.bytes(); }

 private:
  void write(const std::vector<StagedFile>& files, const Manifest& manifest, const std::function<void()>& before);

  std::string folder_;
  CheckpointConfig config_;
  std::set<int64_t> verified_;  // steps; the writer's while it writes
  bool is_durable_ = false;     // that the folder itself is there
  Staging staging_;
  std::thread writer_;
  std::atomic<bool> written_{false};
  SaveResult result_;  // the writer's until written_
};

}  // namespace quell
