// The stop flag, each case in a process of its own.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <functional>

#include "base/signals.h"

using namespace quell;

namespace {
// What the child returned, or 1000 + the signal that killed it.
int in_child(const std::function<int()>& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(work());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
}  // namespace

TEST_CASE("the first signal asks for a stop and says which it was", "[unit]") {
  for (int number : {SIGINT, SIGTERM}) {
    CHECK(in_child([&] {
            signals::install();
            const bool quiet = !signals::stop_requested() && signals::which() == 0;
            raise(number);
            return quiet && signals::stop_requested() && signals::which() == number ? 0 : 1;
          }) == 0);
  }
}

TEST_CASE("the second signal ends the process with 128 and its number", "[unit]") {
  CHECK(in_child([] {
          signals::install();
          raise(SIGINT);
          raise(SIGINT);
          return 0;
        }) == 128 + SIGINT);
  CHECK(in_child([] {
          signals::install();
          raise(SIGINT);
          raise(SIGTERM);
          return 0;
        }) == 128 + SIGTERM);
}

TEST_CASE("a requested stop is no signal, and the signal after it is the first", "[unit]") {
  CHECK(in_child([] {
          signals::install();
          signals::request_stop();
          const bool stopped = signals::stop_requested() && signals::which() == 0;
          raise(SIGTERM);
          return stopped && signals::which() == SIGTERM ? 0 : 1;
        }) == 0);
}

TEST_CASE("a closed pipe is a write error and no end of the process", "[unit]") {
  CHECK(in_child([] {
          signals::install();
          int ends[2];
          if (pipe(ends) != 0) return 1;
          close(ends[0]);
          return write(ends[1], "x", 1) == -1 && errno == EPIPE ? 0 : 1;
        }) == 0);
}
