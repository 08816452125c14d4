// `quell data prepare` that ends early: the program itself, killed and stopped while it writes.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "commands_support.h"
#include "temporary.h"

namespace quell {
namespace {

using Names = std::vector<std::string>;
using testing::Outcome;

// A prepare of a text that takes it about a second, stopped (SIGSTOP) while it writes: nothing here depends on who is faster,
// but for the program not to write the whole text between the look that finds its folder and the signal.
class StoppedPrepare {
 public:
  explicit StoppedPrepare(const testing::TemporaryFolder& folder) : folder_(folder) {
    child_ = fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      const int err = open((folder / "child.txt").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      if (err < 0 || dup2(err, 2) < 0 || chdir(folder.path().c_str()) != 0) _exit(99);
      execl(QUELL_PROGRAM, "quell", "data", "prepare", "--tokenizer", "char", "long.txt", "--out", "out", nullptr);
      _exit(99);
    }
    temporary_ = cat("out.tmp-", child_, "-0");
    while (!files::exists(folder / (temporary_ + "/made/train"))) {
      if (waitpid(child_, nullptr, WNOHANG) != 0) FAIL("the program ended: " << testing::slurp(folder / "child.txt"));
      std::this_thread::yield();
    }
    kill(child_, SIGSTOP);
    int status = 0;
    REQUIRE(waitpid(child_, &status, WUNTRACED) == child_);
    REQUIRE(WIFSTOPPED(status));
    REQUIRE_FALSE(files::exists(folder / "out"));
  }
  ~StoppedPrepare() {
    if (child_ > 0) end(SIGKILL);
  }
  StoppedPrepare(const StoppedPrepare&) = delete;
  StoppedPrepare& operator=(const StoppedPrepare&) = delete;

  const std::string& temporary() const { return temporary_; }
  // Sends the signal, lets the program go on and gives its exit code, as a shell would.
  int end(int signal) {
    kill(child_, signal);
    kill(child_, SIGCONT);
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::string said() const { return testing::slurp(folder_ / "child.txt"); }

 private:
  const testing::TemporaryFolder& folder_;
  pid_t child_ = -1;
  std::string temporary_;
};

// The names in the folder that are neither texts nor what the programs said.
Names made(const testing::TemporaryFolder& folder) {
  Names names = files::list(folder.path());
  std::erase_if(names, [](const std::string& name) { return name.ends_with(".txt"); });
  return names;
}

void write_texts(const testing::TemporaryFolder& folder) {
  std::string line = "a line of a text that is long enough to be written for a while\n", text;
  while (text.size() < size_t{48} << 20) text += line;
  std::ofstream(folder / "long.txt") << text;
  std::ofstream(folder / "short.txt") << "a short text";
}

}  // namespace

TEST_CASE("what a killed prepare left is removed by the next one, with a line; what a living one writes is not", "[unit]") {
  const testing::TemporaryFolder folder;
  write_texts(folder);
  const auto prepare = [&] { return testing::run_program(folder.path(), "data prepare short.txt --out ./out"); };
  // Names that only look like ours, and one of another output.
  const Names others{"other.tmp-1-0", "out.tmp-1-0", "out.tmp-1-x", "out.tmp-final"};
  for (const std::string& name : others) files::make_folders(folder / name);
  for (const char* name : {"other.tmp-1-0/lock", "out.tmp-1-x/lock", "out.tmp-final/lock"}) std::ofstream(folder / name) << "";
  const auto with_others = [&](Names more) {
    more.insert(more.end(), others.begin(), others.end());
    std::sort(more.begin(), more.end());
    return more;
  };

  StoppedPrepare first(folder);
  const Outcome beside = prepare();
  INFO(beside.err);
  CHECK(beside.code == 0);
  CHECK(beside.err.find("removed") == std::string::npos);
  CHECK(made(folder) == with_others({"out", first.temporary()}));

  files::remove_all(folder / "out");
  CHECK(first.end(SIGKILL) == 128 + SIGKILL);
  CHECK(made(folder) == with_others({first.temporary()}));
  const Outcome after = prepare();
  INFO(after.err);
  CHECK(after.code == 0);
  CHECK_THAT(after.err, Catch::Contains(cat("./", first.temporary(), ": removed; whoever made it no longer works on it\n")));
  CHECK(made(folder) == with_others({"out"}));
}

TEST_CASE("SIGINT and SIGTERM end a prepare at once, and it leaves nothing", "[unit]") {
  const testing::TemporaryFolder folder;
  write_texts(folder);
  for (const int signal : {SIGINT, SIGTERM}) {
    StoppedPrepare prepare(folder);
    const int code = prepare.end(signal);
    INFO(prepare.said());
    CHECK(code == 128 + signal);
    CHECK_THAT(prepare.said(), Catch::Contains(cat("out: not made: stopped by signal ", signal)));
    CHECK(made(folder).empty());
  }
}

}  // namespace quell
