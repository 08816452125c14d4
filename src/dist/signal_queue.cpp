#include "dist/signal_queue.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace quell {

SignalQueue::SignalQueue() {
  sigemptyset(&wanted_);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGCHLD}) {
    struct sigaction now = {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN || number == SIGCHLD) sigaddset(&wanted_, number);
  }
  std::signal(SIGPIPE, SIG_IGN);  // who reads what is said may be gone; the ranks are still to end well
  sigprocmask(SIG_BLOCK, &wanted_, &before_);
  queue_ = ::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK);
  if (queue_ < 0) throw MachineError(cat("launch: no signalfd: ", std::strerror(errno)));
}

SignalQueue::~SignalQueue() {
  ::close(queue_);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int SignalQueue::next() const {
  signalfd_siginfo info;
  return ::read(queue_, &info, sizeof info) == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace quell
