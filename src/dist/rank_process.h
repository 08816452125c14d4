// One rank as its launcher sees it: a process with a pipe for what it says and one for where it is (base/signals.h). It dies with the
// launcher, and is in a process group of its own, so that a terminal's Ctrl-C reaches it once, through the launcher.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/signals.h"

namespace quell {

struct RankOptions {
  int rank = 0;
  std::vector<std::string> words;      // the program and its arguments
  std::vector<std::string> variables;  // "NAME=value", all of them
  int inherited_fd = -1;               // a socket that it keeps, or -1
  bool keeps_output = false;           // writes to this process's own output, so that a terminal stays one
  std::string log;                     // a file for what it says, or ""
};

class RankProcess {
 public:
  // Throws MachineError where it cannot be started.
  explicit RankProcess(const RankOptions& options);
  ~RankProcess();  // kills what is left of it
  RankProcess(RankProcess&&) = delete;

  int rank() const { return rank_; }
  pid_t pid() const { return pid_; }
  bool has_ended() const { return pid_ < 0; }
  int code() const;  // once it has ended: as a shell gives it
  std::string ending() const;  // "ended with code 3", "was killed by signal 9 (KILL)"

  void signal(int number) const;
  // Takes it away if it has ended. Whether it did now.
  bool reap();

  // Descriptors to wait on, -1 where there are none (any more).
  int output_fd() const { return output_; }
  int beats_fd() const { return beats_; }
  void read_output();  // whole lines go on to standard error, each with the rank before it, and to the log
  void read_beats();

  const signals::Beat& place() const { return place_; }
  double silent_seconds() const { return since_beat_.seconds(); }
  double longest_gap() const { return longest_gap_; }  // between two beats since it is warm
  bool is_warm() const { return steps_seen_ > 1; }     // a step was made whole

  // "stopped (T), waiting in do_signal_stop", from /proc; "" where there is nothing to see.
  std::string kernel_state() const;

 private:
  void pass_on(const std::string& line);
  int rank_;
  pid_t pid_ = -1;
  int status_ = 0, output_ = -1, beats_ = -1;
  std::string partial_;
  std::ofstream log_;
  signals::Beat place_;
  Timer since_beat_;
  double longest_gap_ = 0;
  int64_t steps_seen_ = 0;
};

}  // namespace quell
