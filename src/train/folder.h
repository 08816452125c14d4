// The run's folder: resolved configuration, vocabulary, digests of the data, metrics, log, checkpoints, final weights. A fresh run
// makes it new; one that exists is an error unless it is gone on with, so that no run ever overwrites another. One process at a
// time works in it: a lock says which.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/lock.h"
#include "train/data_record.h"
#include "train/run.h"

namespace quell {

// Makes or finds the folder and holds its lock, before anything costly is done. Movable.
class FolderLock {
 public:
  // `may_exist`: false throws UsageError where the folder is there. Throws MachineError where another process works in it, and
  // says which. From here on messages also go to log.txt.
  FolderLock(const std::string& path, bool may_exist);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<files::Lock> lock_;
};

// What is said of a folder that must be new and is not.
std::string folder_is_taken(const std::string& path);

// The run's id in FOLDER/run.json; "" where there is no such file. Throws CheckpointError where it holds none.
std::string run_id_of(const std::string& folder);

class RunFolder {
 public:
  // Of a rank that keeps none: what is written goes nowhere.
  RunFolder() = default;
  // Writes run.json, config.yaml, data.json and, where the data have them, vocabulary.json or classes.json. `id`: the run's, or "" for
  // a new one. A config.yaml that was another stays as config.until_<step>.yaml.
  RunFolder(FolderLock lock, const Run& run, const std::string& id = "");

  bool is_kept() const { return lock_.has_value(); }
  std::string path() const { return is_kept() ? lock_->path() : ""; }
  std::string checkpoints() const { return path() + "/checkpoints"; }
  const std::string& id() const { return id_; }  // of the run, through all its resumes
  const Json& data() const { return data_; }     // what data.json holds

  void write_row(const Json& row) {
    if (metrics_) metrics_->write_line(row.dump());
  }
  uint64_t metrics_bytes() const { return metrics_ ? metrics_->size() : 0; }
  void sync_metrics() { metrics_->sync(); }
  // Moves what stands behind the first `bytes` of metrics.jsonl to metrics.set_aside.jsonl: rows of steps that will be made again.
  // Returns how many rows; nothing where the file is shorter than that, and then a line at its end that is cut off goes.
  std::optional<int64_t> set_metrics_aside(uint64_t bytes);

  // weights.safetensors after `step` updates, and where there is a moving average, ema.safetensors; fp64 stays fp64.
  void save_weights(Run& run, int64_t step) const;

 private:
  std::string metrics_path() const { return path() + "/metrics.jsonl"; }
  std::optional<FolderLock> lock_;
  std::string id_;
  Json data_;
  std::unique_ptr<files::Appender> metrics_;
};

}  // namespace quell
