// Signals as something to wait on, beside pipes: a launcher's stop signals, SIGQUIT and SIGCHLD while this lives. One that is ignored (a
// hang-up under nohup) stays so; SIGPIPE is ignored from here on.
#pragma once

#include <csignal>

namespace quell {

class SignalQueue {
 public:
  SignalQueue();  // throws MachineError
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  int fd() const { return queue_; }
  int next() const;  // 0 where none has come

 private:
  sigset_t wanted_, before_;
  int queue_ = -1;
};

}  // namespace quell
