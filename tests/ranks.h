// Tests of several ranks: each rank is a process of its own (never a fork of one that has LibTorch's threads) that runs one hidden test
// case of this very program, told who it is by torchrun's variables. The parent holds the listening socket, so that no port is raced for.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"
#include "dist/store_socket.h"
#include "temporary.h"

extern char** environ;

namespace quell::testing {

// Programs that are told that they are ranks 0 to size - 1.
class Ranks {
 public:
  Ranks(int size, const std::string& program, const std::vector<std::string>& arguments, const std::vector<std::string>& variables = {},
        const std::string& folder = ".")
      : size_(size) {
    for (int rank = 0; rank < size; ++rank) start(rank, program, arguments, variables, folder);
  }
  ~Ranks() {
    for (const pid_t child : children_) {
      if (child > 0) ::kill(child, SIGKILL), ::waitpid(child, nullptr, 0);
    }
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  // To one that was waited for none is sent.
  void signal(int rank, int number) const {
    const pid_t child = children_[static_cast<size_t>(rank)];
    if (child > 0) ::kill(child, number);
  }
  // Until `condition` holds; false where a rank ended before.
  template <class Condition>
  bool wait_for(const Condition& condition) const {
    while (!condition()) {
      for (const pid_t child : children_) {
        siginfo_t ended = {};
        if (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid != 0) return condition();
      }
      std::this_thread::yield();
    }
    return true;
  }
  // Its exit code as a shell gives it.
  int wait(int rank) {
    pid_t& child = children_[static_cast<size_t>(rank)];
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    child = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  std::vector<int> wait() {
    std::vector<int> codes;
    for (int rank = 0; rank < size_; ++rank) codes.push_back(wait(rank));
    return codes;
  }
  std::string said(int rank) const {
    std::ostringstream text;
    text << std::ifstream(output_ / cat("rank", rank, ".txt")).rdbuf();
    return text.str();
  }
  std::string said() const {
    std::string all;
    for (int rank = 0; rank < size_; ++rank) all += cat("--- rank ", rank, "\n", said(rank));
    return all;
  }

 private:
  void start(int rank, const std::string& program, const std::vector<std::string>& arguments, const std::vector<std::string>& more, const std::string& folder) {
    std::vector<std::string> words{program}, variables;
    words.insert(words.end(), arguments.begin(), arguments.end());
    for (char** entry = environ; *entry != nullptr; ++entry) variables.push_back(*entry);
    for (const std::string& variable : {cat("RANK=", rank), cat("WORLD_SIZE=", size_), cat("LOCAL_RANK=", rank), cat("LOCAL_WORLD_SIZE=", size_),
                                        cat("MASTER_ADDR=127.0.0.1"), cat("MASTER_PORT=", socket_.port()), cat("QUELL_STORE_FD=", socket_.fd()),
                                        cat("OMP_NUM_THREADS=1")}) {
      variables.push_back(variable);
    }
    variables.insert(variables.end(), more.begin(), more.end());
    std::vector<char*> argv, envp;
    for (std::string& word : words) argv.push_back(word.data());
    for (std::string& variable : variables) envp.push_back(variable.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, (output_ / cat("rank", rank, ".txt")).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    posix_spawn_file_actions_adddup2(&actions, socket_.fd(), socket_.fd());  // kept where it is, and open
    posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
    pid_t child = -1;
    REQUIRE(::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), envp.data()) == 0);
    posix_spawn_file_actions_destroy(&actions);
    children_.push_back(child);
  }

  TemporaryFolder output_;
  StoreSocket socket_{0, /*local=*/true};
  int size_;
  std::vector<pid_t> children_;
};

// Runs the hidden test case of this name in `size` ranks and checks that it passes in all of them.
inline void in_ranks(int size, const std::string& hidden_case, const std::vector<std::string>& variables = {}) {
  char self[4096];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self - 1);
  REQUIRE(length > 0);
  Ranks ranks(size, std::string(self, static_cast<size_t>(length)), {hidden_case}, variables);
  const std::vector<int> codes = ranks.wait();
  INFO(ranks.said());
  CHECK(codes == std::vector<int>(static_cast<size_t>(size), 0));
  // A name that matches nothing would pass too.
  for (int rank = 0; rank < size; ++rank) CHECK(ranks.said(rank).find("All tests passed") != std::string::npos);
}

}  // namespace quell::testing
