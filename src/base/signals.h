// The stop flag. The first SIGTERM, SIGINT, SIGHUP, SIGUSR1 or SIGUSR2 asks for a stop (read by the loop between steps and
// between the batches of an evaluation); the second ends the process at once with 128 + n (under a launcher not the same one within a
// tenth of a second). SIGQUIT writes where the program is to
// standard error and changes nothing. SIGPIPE is ignored, so that a closed pipe becomes a write error.
#pragma once

#include <cstdint>

namespace quell::signals {

void install();
// What SIGQUIT tells: a word that lives for ever ("step", "evaluation") and a step.
void set_place(const char* phase, int64_t step);

// A place as it goes to a launcher, which takes that none comes for a sign that a rank hangs.
struct Beat {
  int64_t step = 0;
  uint64_t collectives = 0;  // begun so far
  char phase[16] = "start";  // cut to 15 bytes
};
// From here on each place is written to this pipe, whole or, where it is full, not at all. The number stands in QUELL_BEATS_FD where a
// launcher has started this process.
void tell_places_to(int descriptor);
void count_collective();  // tells the place again
bool stop_requested();
int which();  // the signal's number, or 0
// For time limits and tests: the loop stops as after a signal, which() stays 0, and a signal that follows is the first
// one.
void request_stop();

}  // namespace quell::signals
