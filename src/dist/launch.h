// Starts the ranks of one machine as torchrun does, with its variables, and stays until they have ended: passes on signals and what they
// say, notices within its limits that one has died or hangs, says which and where, ends the others, and starts all again if it may.
#pragma once

#include <string>
#include <vector>

namespace quell {

struct LaunchOptions {
  int local_ranks = 1;
  int nodes = 1, node = 0;
  std::string host;   // where the store is: of the first node; "" on one node
  int port = 0;       // 0: a free one, on one node
  int max_restarts = 0;
  std::string job = "none";  // its name, the same on all nodes
  std::string log_dir;       // a file for each rank, or ""
  double limit_seconds = 0;  // without a beat; 0: 60, or ten times the longest so far, and 600 where a start or a save may take long
  bool dry_run = false;      // only say what would be started
  std::vector<std::string> words;  // of `quell train`
};

// The exit code: that of the first rank that failed, or of the run.
int launch(const LaunchOptions& options);

}  // namespace quell
