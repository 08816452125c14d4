#include "base/signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
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
  // Whoever asked is told at once, even if the work in hand takes long. write() may be called here; errno is the program's.
  const int error = errno;
  static const char text[] = "\nstopping as soon as the work in hand is done; again to quit at once\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, sizeof text - 1);
  errno = error;
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
  handle(SIGXFSZ, SIG_IGN);  // a file-size limit is then an error of write()
}

bool stop_requested() { return requested; }
int which() { return received; }
void request_stop() { requested = true; }

}  // namespace quell::signals
