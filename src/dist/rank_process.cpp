#include "dist/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw MachineError(cat("launch: no pipe for a rank: ", std::strerror(errno)));
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {ends[0], ends[1]};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Between fork and exec: only calls that are allowed there.
[[noreturn]] void become(const RankOptions& options, pid_t launcher, int output, int beats, char** words, char** variables) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != launcher) _exit(1);  // it has died meanwhile
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (output >= 0 && (::dup2(output, STDOUT_FILENO) < 0 || ::dup2(output, STDERR_FILENO) < 0)) _exit(1);
  if (options.inherited_fd >= 0) ::fcntl(options.inherited_fd, F_SETFD, 0);
  ::fcntl(beats, F_SETFD, 0);
  ::execve(words[0], words, variables);
  _exit(127);
}

}  // namespace

RankProcess::RankProcess(const RankOptions& options) : rank_(options.rank) {
  if (!options.log.empty()) log_.open(options.log, std::ios::app);
  if (!options.log.empty() && !log_) throw MachineError(options.log + ": cannot be written");
  const Pipe output = options.keeps_output ? Pipe{} : make_pipe(), beats = make_pipe();
  std::vector<std::string> words = options.words, variables = options.variables;
  variables.push_back(cat("QUELL_BEATS_FD=", beats.write_end));
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const pid_t launcher = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) become(options, launcher, output.write_end, beats.write_end, const_cast<char**>(argv.data()), const_cast<char**>(envp.data()));
  for (const int end : {output.write_end, beats.write_end}) {
    if (end >= 0) ::close(end);
  }
  output_ = output.read_end;
  beats_ = beats.read_end;
  if (pid_ < 0) throw MachineError(cat("launch: rank ", rank_, " cannot be started: ", std::strerror(errno)));
  ::setpgid(pid_, pid_);  // whoever of the two comes first
}

RankProcess::~RankProcess() {
  if (pid_ > 0) {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status_, 0);
  }
  for (const int end : {output_, beats_}) {
    if (end >= 0) ::close(end);
  }
}

int RankProcess::code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_); }

std::string RankProcess::ending() const {
  if (WIFEXITED(status_)) return cat("ended with code ", WEXITSTATUS(status_));
  const char* name = ::sigabbrev_np(WTERMSIG(status_));
  return cat("was killed by signal ", WTERMSIG(status_), name != nullptr ? cat(" (", name, ")") : "");
}

void RankProcess::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

bool RankProcess::reap() {
  if (pid_ < 0 || ::waitpid(pid_, &status_, WNOHANG) != pid_) return false;
  ::kill(-pid_, SIGKILL);  // whatever it has started
  pid_ = -1;
  return true;
}

void RankProcess::read_output() {
  char bytes[4096];
  while (output_ >= 0) {
    const ssize_t count = ::read(output_, bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;  // nothing now
    if (count == 0) {
      if (!partial_.empty()) pass_on(partial_);
      partial_.clear();
      ::close(output_);
      output_ = -1;
      return;
    }
    partial_.append(bytes, static_cast<size_t>(count));
    for (size_t end; (end = partial_.find('\n')) != std::string::npos; partial_.erase(0, end + 1)) pass_on(partial_.substr(0, end));
  }
}

void RankProcess::pass_on(const std::string& line) {
  if (log_.is_open() && log_ && !(log_ << line << "\n" << std::flush)) {
    std::cerr << "warning: launch: the log of rank " << rank_ << " cannot be written any more\n";
  }
  std::cerr << (rank_ == 0 ? "" : cat("rank ", rank_, ": ")) << line << "\n" << std::flush;
}

void RankProcess::read_beats() {
  signals::Beat beat;
  while (beats_ >= 0) {
    const ssize_t count = ::read(beats_, &beat, sizeof beat);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count != static_cast<ssize_t>(sizeof beat)) {
      ::close(beats_);
      beats_ = -1;
      return;
    }
    if (is_warm()) longest_gap_ = std::max(longest_gap_, since_beat_.seconds());
    if (beat.step != place_.step || (steps_seen_ == 0 && std::strcmp(beat.phase, "step") == 0)) ++steps_seen_;
    place_ = beat;
    since_beat_.restart();
  }
}

std::string RankProcess::kernel_state() const {
  if (pid_ < 0) return "";
  std::string state, place, line;
  std::ifstream status(cat("/proc/", pid_, "/status"));
  while (std::getline(status, line)) {
    if (line.starts_with("State:\t")) state = line.substr(7);
  }
  std::getline(std::ifstream(cat("/proc/", pid_, "/wchan")), place);
  return state + (place.empty() || place == "0" ? "" : ", in the kernel's " + place);
}

}  // namespace quell
