#include "base/machine.h"

#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace quell::machine {
namespace {

// "" where there is none or it may not be read: a limit that cannot be known does not stop the program.
std::string text_of(const std::string& path) {
  try {
    return files::exists(path) ? files::read(path, 1 << 20) : "";
  } catch (const MachineError&) {
    return "";
  }
}

// The first number of a file; "max", -1 and absence mean no limit.
double limit_in(const std::string& path) {
  double value = -1;
  const bool read = static_cast<bool>(std::istringstream(text_of(path)) >> value);
  return read && value >= 0 ? value : std::numeric_limits<double>::infinity();
}

double quota_v2(const std::string& folder) {
  std::istringstream words(text_of(folder + "/cpu.max"));
  double quota = -1, period = 0;
  return words >> quota >> period && quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

double quota_v1(const std::string& folder) {
  const double quota = limit_in(folder + "/cpu.cfs_quota_us"), period = limit_in(folder + "/cpu.cfs_period_us");
  return std::isfinite(quota) && std::isfinite(period) && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

// A limit of any group above binds too. In a container the path may lie outside what is mounted; then only the mounted
// root is seen, which is the container's own group.
template <class Visit>
void for_each_group(const std::string& mount, std::string path, const Visit& visit) {
  while (true) {
    visit(mount + path);
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos || path.empty()) return;
    path.resize(slash);
  }
}

bool has(const std::string& controllers, const std::string& wanted) {
  return ("," + controllers + ",").find("," + wanted + ",") != std::string::npos;
}

int affinity() {
  // The kernel refuses a mask smaller than its own, whose size is not told: double until it is taken.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    const size_t size = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    const bool known = sched_getaffinity(0, size, set) == 0;
    const int count = known ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(count, 1);
  }
  return std::max(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)), 1);
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root) {
  CgroupLimits limits;
  const auto memory_at_most = [&](double bytes) {
    if (bytes < 0x1p63) limits.memory = std::min(limits.memory, static_cast<uint64_t>(bytes));
  };
  const std::string mount = root + "/sys/fs/cgroup";
  std::istringstream lines(text_of(root + "/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // hierarchy:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      for_each_group(mount, path, [&](const std::string& folder) {
        limits.cpus = std::min(limits.cpus, quota_v2(folder));
        memory_at_most(limit_in(folder + "/memory.max"));
      });
    }
    if (has(controllers, "cpu")) {
      const std::string joint = mount + "/" + controllers;
      for_each_group(files::exists(joint) ? joint : mount + "/cpu", path,
                     [&](const std::string& folder) { limits.cpus = std::min(limits.cpus, quota_v1(folder)); });
    }
    if (has(controllers, "memory")) {
      for_each_group(mount + "/memory", path,
                     [&](const std::string& folder) { memory_at_most(limit_in(folder + "/memory.limit_in_bytes")); });
    }
  }
  return limits;
}

int cores() {
  const double quota = std::ceil(cgroup_limits("").cpus);
  return std::max(1, static_cast<int>(std::min<double>(affinity(), quota)));
}

uint64_t memory_limit() {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  return std::min(pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), cgroup_limits("").memory);
}

// VmHWM and not getrusage's ru_maxrss, which keeps the peak of the program that called exec.
uint64_t peak_resident_bytes() {
  const std::string status = text_of("/proc/self/status");
  const size_t at = status.find("VmHWM:");
  return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + 6, nullptr, 10) * 1024;
}

uint64_t minor_page_faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_minflt);
}

void lower_thread_priority() { setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 10); }

bool is_terminal(int descriptor) {
  const char* term = std::getenv("TERM");
  return isatty(descriptor) == 1 && !(term && std::strcmp(term, "dumb") == 0);
}

int terminal_width(int descriptor) {
  winsize size = {};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool colour_wanted(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  return is_terminal(descriptor) && !(no_colour && *no_colour);
}

}  // namespace quell::machine
