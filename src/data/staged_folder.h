// A folder that is made beside its place and takes its name whole or not at all. While it is made it is `made` in
// OUT.tmp-PID-N, beside a lock file that the maker holds, so that who comes later can tell a dead one's leftovers from
// a folder that is being written.
#pragma once

#include <optional>
#include <string>

#include "base/files.h"
#include "base/lock.h"
#include "base/progress.h"

namespace quell {

class StagedFolder {
 public:
  // Removes first what killed processes left beside `out`, with a note for each.
  StagedFolder(std::string out, const Progress& progress);
  ~StagedFolder();  // without commit(): nothing stays
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  std::string path() const;  // what to write into
  void commit();             // throws UsageError where `out` was made in the meantime

 private:
  std::string out_, holder_;
  std::optional<files::Lock> lock_;
};

}  // namespace quell
