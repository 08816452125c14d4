#include "base/signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace quell::signals {
namespace {

std::atomic<int> received{0};
std::atomic<bool> requested{false};
std::atomic<int> beats{-1};  // a pipe to a launcher, or -1
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free &&
                  std::atomic<const char*>::is_always_lock_free && std::atomic<int64_t>::is_always_lock_free,
              "a signal handler may touch lock-free atomics only");

std::atomic<int64_t> received_ns{0};

int64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

void on_signal(int number) {
  int none = 0;
  if (!received.compare_exchange_strong(none, number)) {
    // Under a launcher one signal may come twice: from it, and from whoever has signalled every process.
    constexpr int64_t once_ns = 100'000'000;
    if (beats >= 0 && number == none && now_ns() - received_ns < once_ns) return;
    _exit(128 + number);
  }
  received_ns = now_ns();
  requested = true;
  // Whoever asked is told at once, even if the work in hand takes long. write() may be called here; errno is the program's.
  const int error = errno;
  static const char text[] = "\nstopping as soon as the work in hand is done; again to quit at once\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, sizeof text - 1);
  errno = error;
}

std::atomic<const char*> place_phase{"start"};
std::atomic<int64_t> place_step{0};
std::atomic<uint64_t> collectives{0};

void tell_place() {
  if (beats < 0) return;
  Beat beat;
  beat.step = place_step;
  beat.collectives = collectives;
  std::strncpy(beat.phase, place_phase, sizeof beat.phase - 1);
  beat.phase[sizeof beat.phase - 1] = 0;
  [[maybe_unused]] const ssize_t written = ::write(beats, &beat, sizeof beat);  // one that small is not torn
}

// Only what may be called in a handler.
void on_quit(int) {
  const int error = errno;
  char text[128] = "\nat step ";
  size_t end = std::strlen(text);
  char digits[20];
  int count = 0;
  for (int64_t rest = place_step; rest > 0 || count == 0; rest /= 10) digits[count++] = static_cast<char>('0' + rest % 10);
  while (count > 0) text[end++] = digits[--count];
  text[end++] = ',';
  text[end++] = ' ';
  for (const char* at = place_phase; *at != 0 && end + 1 < sizeof text; ++at) text[end++] = *at;
  text[end++] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, end);
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
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) handle(number, on_signal);
  // Under nohup it is ignored, and is to stay so: the run outlives the terminal.
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) handle(SIGHUP, on_signal);
  handle(SIGQUIT, on_quit);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);  // a file-size limit is then an error of write()
}

void set_place(const char* phase, int64_t step) {
  place_phase = phase;
  place_step = step;
  tell_place();
}

void tell_places_to(int descriptor) {
  ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
  ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  beats = descriptor;
  tell_place();
}

void count_collective() {
  ++collectives;
  tell_place();
}

bool stop_requested() { return requested; }
int which() { return received; }
void request_stop() { requested = true; }

}  // namespace quell::signals
