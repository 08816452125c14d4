// Disks that fail: each operation of each way to write is made to fail in turn, and after each failure the old file or
// the new one is there whole, nothing else is, and the error names the path and the reason.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "temporary.h"

using namespace quell;
using quell::testing::TemporaryFolder;

namespace {

// Fails the n-th operation (from 0) with `reason` while it lives.
class FailNth {
 public:
  FailNth(int n, int reason) {
    files::set_faults([this, n, reason](const char* operation, const std::string&) {
      if (count_++ != n) return 0;
      failed_ = operation;
      return reason;
    });
  }
  ~FailNth() { files::set_faults({}); }
  const std::string& failed() const { return failed_; }  // "" while none did

 private:
  int count_ = 0;
  std::string failed_;
};

// Runs `work` with the n-th operation failing for n = 0, 1, ... until none fails, checks after each, and returns what
// failed.
std::vector<std::string> fail_each(const std::function<void()>& work, const std::string& named,
                                   const std::function<void(const std::string& failed)>& check) {
  std::vector<std::string> operations;
  for (int n = 0;; ++n) {
    std::string failed, message;
    {
      FailNth fault(n, ENOSPC);
      try {
        work();
      } catch (const MachineError& error) {
        message = error.what();
      }
      failed = fault.failed();
    }
    if (failed.empty()) return operations;
    operations.push_back(failed);
    CAPTURE(n, failed, message);
    if (failed != "unlink") CHECK(message.starts_with(named));
    if (failed != "unlink") CHECK(message.ends_with(": No space left on device"));
    check(failed);
  }
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an atomic write that fails anywhere leaves the old file or the new one, whole", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "a";
  files::write_atomically(path, "old");
  const auto operations = fail_each([&] { files::write_atomically(path, "new"); }, folder.path(),
                                    [&](const std::string&) {
                                      // Only the fsync of the folder, the last operation, comes after the rename.
                                      const std::string now = files::read(path);
                                      CHECK((now == "old" || now == "new"));
                                      CHECK(files::list(folder.path()) == Names{"a"});
                                    });
  CHECK(operations == Names{"open", "write", "fsync", "rename", "fsync"});
}

TEST_CASE("the old file survives each failure before the rename", "[unit]") {
  for (int n = 0; n < 4; ++n) {
    TemporaryFolder folder;
    files::write_atomically(folder / "a", "old");
    {
      FailNth fault(n, EIO);
      CHECK_THROWS_AS(files::write_atomically(folder / "a", "new"), MachineError);
    }
    CHECK(files::read(folder / "a") == "old");
    CHECK(files::list(folder.path()) == Names{"a"});
  }
}

TEST_CASE("an output in pieces that fails anywhere leaves the old file or the new one, whole", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "a";
  files::write_atomically(path, "old");
  const auto work = [&] {
    files::Output output(path);
    for (int piece = 0; piece < 3; ++piece) output.write("new", 3);
    output.commit();
  };
  const auto operations = fail_each(work, folder.path(), [&](const std::string& failed) {
    const std::string now = files::read(path);
    CHECK((now == "old" || now == "newnewnew"));
    if (failed == "write" || failed == "rename") CHECK(now == "old");
    CHECK(files::list(folder.path()) == Names{"a"});
    files::write_atomically(path, "old");
  });
  CHECK(operations == Names{"open", "write", "write", "write", "fsync", "rename", "fsync"});
}

TEST_CASE("a temporary file that cannot be removed does not hide the first error", "[unit]") {
  TemporaryFolder folder;
  files::set_faults([](const char* operation, const std::string&) {
    const std::string_view name = operation;
    return name == "write" ? ENOSPC : name == "unlink" ? EIO : 0;
  });
  CHECK_THROWS_MATCHES(files::write_atomically(folder / "a", "x"), MachineError,
                       Catch::Message((folder / "a") + ": cannot be written: No space left on device"));
  files::set_faults({});
}

TEST_CASE("folders and renames that fail change nothing", "[unit]") {
  TemporaryFolder folder;
  CHECK(fail_each([&] { files::make_new_folder(folder / "x/y"); }, folder / "x",
                  [&](const std::string&) {
                    CHECK_FALSE(files::exists(folder / "x/y"));
                    files::remove_all(folder / "x");
                  }) == Names{"mkdir", "mkdir"});
  files::write_atomically(folder / "from", "x");
  files::remove_all(folder / "x");
  {
    FailNth fault(0, EIO);
    CHECK_THROWS_AS(files::rename_new(folder / "from", folder / "to"), MachineError);
  }
  CHECK(files::list(folder.path()) == Names{"from"});
  {
    FailNth fault(0, EACCES);
    CHECK_THROWS_MATCHES(files::remove_all(folder / "from"), MachineError,
                         Catch::Message((folder / "from") + ": cannot be removed: Permission denied"));
  }
  CHECK(files::list(folder.path()) == Names{"from"});
}

TEST_CASE("a line that the disk takes only in part is taken back", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "log";
  const pid_t child = fork();
  if (child == 0) {  // a real short write: a limit on the file's size in a process of its own
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10, 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    files::Appender log(path);
    log.write_line("12345");
    try {
      log.write_line("1234567");
    } catch (const MachineError& error) {
      _exit(std::string(error.what()) == path + ": cannot be written: File too large" ? 0 : 2);
    }
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(files::read(path) == "12345\n");
}

TEST_CASE("a write that was killed in the middle leaves the old file", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "a";
  files::write_atomically(path, "old");
  for (const char* operation : {"write", "fsync", "rename"}) {
    const pid_t child = fork();
    if (child == 0) {
      files::set_faults([&](const char* now, const std::string&) {
        if (std::string(now) == operation) raise(SIGKILL);
        return 0;
      });
      files::write_atomically(path, "new");
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    CHECK(files::read(path) == "old");
  }
}
