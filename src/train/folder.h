// The run's folder: resolved configuration, vocabulary, digests of the data, metrics, log, final weights. It is made new; one that
// exists is an error, so that no run ever overwrites another.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "train/run.h"

namespace quell {

class RunFolder {
 public:
  // Makes the folder with config.yaml, data.json and, where the data have them, vocabulary.json or classes.json.
  RunFolder(const std::string& path, const Run& run);

  const std::string& path() const { return path_; }
  void write_row(const Json& row) { metrics_->write_line(row.dump()); }
  // weights.safetensors after `step` updates, and where there is a moving average, ema.safetensors; fp64 stays fp64.
  void save_weights(Run& run, int64_t step) const;

 private:
  std::string path_;
  std::unique_ptr<files::Appender> metrics_;
};

}  // namespace quell
