#include "base/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace quell::signals {
namespace {

std::atomic<int> received{0};
std::atomic<bool> requested{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free,
              "a signal handler may touch lock-free atomics only");

void on_signal(int number) {
  int none = 0;
  if (!received.compare_exchange_strong(none, number)) _exit(128 + number);
  requested = true;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(number, &action, nullptr);
}

}  // namespace

void install() {
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  handle(SIGPIPE, SIG_IGN);
}

bool stop_requested() { return requested; }
int which() { return received; }
void request_stop() { requested = true; }

}  // namespace quell::signals
