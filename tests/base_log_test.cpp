// Where messages go.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "temporary.h"

using namespace quell;

TEST_CASE("messages go to standard error and to the log file, which stays complete when quiet", "[unit]") {
  quell::testing::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    dup2(open((folder / "stderr").c_str(), O_WRONLY | O_CREAT, 0666), 2);
    log::also_to_file(folder / "run.log");
    log::info("one {} %s");
    log::set_quiet(true);
    log::info("two");
    log::warn("three");
    log::error("four");
    _exit(0);
  }
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(files::read(folder / "stderr") == "one {} %s\nwarning: three\nerror: four\n");
  const std::string log = files::read(folder / "run.log");
  for (const char* message : {"one {} %s\n", " two\n", "warning: three\n", "error: four\n"}) {
    CHECK(log.find(message) != std::string::npos);
  }
}

TEST_CASE("a log file that cannot be opened is an error of the machine that names it", "[unit]") {
  try {
    log::also_to_file("/proc/no/run.log");
    FAIL("accepted");
  } catch (const MachineError& error) {
    CHECK(std::string(error.what()).starts_with("/proc/no/run.log: cannot be opened as the run's log: "));
  }
}
