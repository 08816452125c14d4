// Errors and exit codes. An error is thrown in a room and caught once, in main, which prints it and exits with its
// code. A message starts with the thing that is wrong ("model.heads: 12 does not divide model.width 770"), never with
// the function.
#pragma once

#include <stdexcept>
#include <string>

namespace quell {

// What the process's exit status says. The README and the tests hold the same table.
enum class Exit {
  finished = 0,
  answer_is_no = 1,  // plan, verify, diff, verify-resume, replay, doctor
  usage = 2,         // command line or configuration
  data = 3,
  checkpoint = 4,
  numerics = 5,  // stopped by a stability policy
  peer = 6,      // a peer was lost, or a collective timed out
  machine = 7,   // memory, disk, permission, port, device
  bug = 70,      // ours; printed with a trace
  stopped = 75   // on request, with a checkpoint written
};

class Error : public std::runtime_error {
 public:
  Error(Exit exit, const std::string& message) : std::runtime_error(message), exit_(exit) {}
  Exit exit() const { return exit_; }

 private:
  Exit exit_;
};

// One type for each party that can be at fault, so that a throw reads as a sentence.
struct UsageError : Error {
  explicit UsageError(const std::string& m) : Error(Exit::usage, m) {}
};
struct DataError : Error {
  explicit DataError(const std::string& m) : Error(Exit::data, m) {}
};
struct CheckpointError : Error {
  explicit CheckpointError(const std::string& m) : Error(Exit::checkpoint, m) {}
};
struct NumericsError : Error {
  explicit NumericsError(const std::string& m) : Error(Exit::numerics, m) {}
};
struct PeerError : Error {
  explicit PeerError(const std::string& m) : Error(Exit::peer, m) {}
};
struct MachineError : Error {
  explicit MachineError(const std::string& m) : Error(Exit::machine, m) {}
};
// Of data that a run reads: what the run did before is whole, and can be gone on with.
struct UnreadableData : MachineError {
  using MachineError::MachineError;
};
// A stop was asked for while something took long; nothing that was begun counts.
struct Stopped : Error {
  Stopped() : Error(Exit::stopped, "stopped on request") {}
};
struct Bug : Error {
  explicit Bug(const std::string& m) : Error(Exit::bug, m) {}
};
// A signal asked for an end and what was begun is undone; the exit code is the one of a process that the signal kills.
struct Interrupted : Error {
  Interrupted(const std::string& m, int signal) : Error(static_cast<Exit>(128 + signal), m) {}
};

// For invariants of our own: `require(rows > 0, "norm: no rows")`. Users' mistakes get one of the errors above.
inline void require(bool holds, const char* message) {
  if (!holds) throw Bug(message);
}

}  // namespace quell
