// Control groups as folders that look like /sys/fs/cgroup, and what the real machine says.
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/machine.h"
#include "temporary.h"

using namespace quell;

namespace {
class FakeRoot {
 public:
  void put(const std::string& path, const std::string& text) {
    const std::string whole = folder_ / path;
    files::make_folders(whole.substr(0, whole.rfind('/')));
    files::write_atomically(whole, text);
  }
  machine::CgroupLimits limits() const { return machine::cgroup_limits(folder_.path()); }

 private:
  quell::testing::TemporaryFolder folder_;
};
}  // namespace

TEST_CASE("without control groups nothing is limited", "[unit]") {
  FakeRoot root;
  CHECK(std::isinf(root.limits().cpus));
  CHECK(root.limits().memory == UINT64_MAX);
}

TEST_CASE("version 2 quotas count, and those of groups above too", "[unit]") {
  FakeRoot root;
  root.put("proc/self/cgroup", "0::/jobs/mine\n");
  root.put("sys/fs/cgroup/jobs/mine/cpu.max", "max 100000\n");
  root.put("sys/fs/cgroup/jobs/mine/memory.max", "4000000000\n");
  CHECK(std::isinf(root.limits().cpus));
  CHECK(root.limits().memory == 4000000000u);
  root.put("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n");
  root.put("sys/fs/cgroup/jobs/memory.max", "max\n");
  CHECK(root.limits().cpus == 1.5);
  CHECK(root.limits().memory == 4000000000u);
  root.put("sys/fs/cgroup/cpu.max", "50000 100000\n");
  CHECK(root.limits().cpus == 0.5);
}

TEST_CASE("version 1 quotas count, under the joint and the single name", "[unit]") {
  for (const std::string folder : {"cpu,cpuacct", "cpu"}) {
    FakeRoot root;
    root.put("proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box\n1:name=systemd:/box\n0::/\n");
    root.put("sys/fs/cgroup/" + folder + "/box/cpu.cfs_quota_us", "-1\n");
    root.put("sys/fs/cgroup/" + folder + "/box/cpu.cfs_period_us", "100000\n");
    root.put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(std::isinf(root.limits().cpus));
    CHECK(root.limits().memory > uint64_t{1} << 62);
    root.put("sys/fs/cgroup/" + folder + "/box/cpu.cfs_quota_us", "250000\n");
    root.put("sys/fs/cgroup/memory/box/memory.limit_in_bytes", "1073741824\n");
    CHECK(root.limits().cpus == 2.5);
    CHECK(root.limits().memory == 1u << 30);
  }
}

TEST_CASE("inside a container the mounted root stands for the group's own path", "[unit]") {
  FakeRoot root;
  root.put("proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n0::/docker/0123\n");
  root.put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  root.put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.put("sys/fs/cgroup/memory.max", "1000\n");
  CHECK(root.limits().cpus == 2);
  CHECK(root.limits().memory == 1000);
}

TEST_CASE("broken control group files are no limit and no error", "[unit]") {
  FakeRoot root;
  root.put("proc/self/cgroup", "nonsense\n0::/a\n");
  root.put("sys/fs/cgroup/a/cpu.max", "\n");
  root.put("sys/fs/cgroup/a/memory.max", "many\n");
  CHECK(std::isinf(root.limits().cpus));
  CHECK(root.limits().memory == UINT64_MAX);
}

TEST_CASE("cores follow the affinity mask", "[unit]") {
  CHECK(machine::cores() >= 1);
  int cores_on_one = 0;
  std::thread([&] {
    const int here = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(here), &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    cores_on_one = machine::cores();
  }).join();
  CHECK(cores_on_one == 1);
}

TEST_CASE("memory and page faults are measured", "[unit]") {
  CHECK(machine::memory_limit() > 1 << 20);
  CHECK(machine::memory_limit() < uint64_t{1} << 50);
  const uint64_t faults = machine::minor_page_faults();
  std::vector<char> block(64 << 20);
  for (size_t i = 0; i < block.size(); i += 4096) block[i] = 1;
  CHECK(machine::minor_page_faults() > faults);
  CHECK(machine::peak_resident_bytes() >= block.size());
  CHECK(machine::peak_resident_bytes() < machine::memory_limit());
}

TEST_CASE("a helper thread's priority is lowered and no other's", "[unit]") {
  const int before = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  int helper = before;
  std::thread([&] {
    machine::lower_thread_priority();
    helper = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  }).join();
  CHECK(helper == 10);
  CHECK(getpriority(PRIO_PROCESS, static_cast<id_t>(gettid())) == before);
}

TEST_CASE("a terminal is told from a file, and colour is off where it is unwanted", "[unit]") {
  const int file = open("/dev/null", O_RDWR);
  CHECK_FALSE(machine::is_terminal(file));
  CHECK_FALSE(machine::colour_wanted(file));
  CHECK(machine::terminal_width(file) == 80);
  close(file);

  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(master >= 0);
  REQUIRE((grantpt(master) == 0 && unlockpt(master) == 0));
  const int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  winsize size = {};
  size.ws_col = 123;
  REQUIRE(ioctl(terminal, TIOCSWINSZ, &size) == 0);
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  CHECK(machine::is_terminal(terminal));
  CHECK(machine::colour_wanted(terminal));
  CHECK(machine::terminal_width(terminal) == 123);
  setenv("NO_COLOR", "1", 1);
  CHECK_FALSE(machine::colour_wanted(terminal));
  setenv("NO_COLOR", "", 1);
  CHECK(machine::colour_wanted(terminal));
  setenv("TERM", "dumb", 1);
  CHECK_FALSE(machine::is_terminal(terminal));
  CHECK_FALSE(machine::colour_wanted(terminal));
  unsetenv("NO_COLOR");
  close(terminal);
  close(master);
}
