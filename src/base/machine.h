// What this process may use and has used: cores (affinity and cgroup quota), memory, page faults, the terminal.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace quell::machine {

int cores();                     // at least 1: the smaller of the affinity mask and the cgroup's CPU quota, rounded up
uint64_t memory_limit();         // bytes: physical memory or the cgroup's limit, whichever is smaller
uint64_t peak_resident_bytes();  // of this process so far
uint64_t minor_page_faults();    // of this process so far

// Of the calling thread, for helpers (prefetch, writer): training's threads come first. Cannot fail in a way that
// matters.
void lower_thread_priority();

// What control groups, version 1 or 2, grant this process and all groups above it. `root`: of the file system; tests
// pass a folder that looks like one.
struct CgroupLimits {
  double cpus = std::numeric_limits<double>::infinity();
  uint64_t memory = UINT64_MAX;
};
CgroupLimits cgroup_limits(const std::string& root);

bool is_terminal(int descriptor);    // a TTY that is not TERM=dumb
int terminal_width(int descriptor);  // columns; 80 where unknown
bool colour_wanted(int descriptor);  // a terminal, and NO_COLOR unset or empty

}  // namespace quell::machine
