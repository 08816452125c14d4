// The program in a process of its own, beside the test: started, looked at while it runs, signalled, waited for. Nothing here sleeps
// for a time: what is waited for is a condition or the process's end.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "commands_support.h"

namespace quell::testing {

class Child {
 public:
  // Runs in `folder`; what it says on standard error goes to `folder`/child.txt.
  Child(const std::string& folder, std::vector<std::string> arguments) : said_(folder + "/child.txt") {
    ::unlink(said_.c_str());
    arguments.insert(arguments.begin(), "quell");
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    child_ = fork();
    REQUIRE(child_ >= 0);
    if (child_ != 0) return;
    std::signal(SIGHUP, SIG_DFL);  // which the tests may have been started to ignore
    const int err = open(said_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (err < 0 || dup2(err, 2) < 0 || chdir(folder.c_str()) != 0) _exit(99);
    execv(QUELL_PROGRAM, words.data());
    _exit(99);
  }
  ~Child() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Until `condition` holds; false where the program ended before.
  bool wait_for(const std::function<bool()>& condition) {
    while (!condition()) {
      if (has_ended()) return condition();
      std::this_thread::yield();
    }
    return true;
  }
  // To one that has ended none is sent: kill() would take the -1 for every process that there is.
  void signal(int number) const {
    if (child_ > 0) ::kill(child_, number);
  }
  // Until go_on(): it stands still when this returns. False where it had ended.
  bool hold() {
    if (has_ended()) return false;
    signal(SIGSTOP);
    if (::waitpid(child_, &status_, WUNTRACED) == child_ && WIFSTOPPED(status_)) return true;
    child_ = -1;
    return false;
  }
  void go_on() const { signal(SIGCONT); }
  // The exit code as a shell gives it.
  int wait() {
    if (child_ > 0) {
      ::waitpid(child_, &status_, 0);
      child_ = -1;
    }
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }
  std::string said() const { return slurp(said_); }
  pid_t pid() const { return child_; }

 private:
  bool has_ended() {
    if (child_ > 0 && ::waitpid(child_, &status_, WNOHANG) == child_) child_ = -1;
    return child_ < 0;
  }
  std::string said_;
  pid_t child_ = -1;
  int status_ = 0;
};

}  // namespace quell::testing
