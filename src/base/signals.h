// The stop flag. The first SIGINT or SIGTERM asks for a stop (read by the loop between steps); the second ends the
// process at once with 128 + n. SIGPIPE is ignored, so that a closed pipe becomes a write error.
#pragma once

namespace quell::signals {

void install();
bool stop_requested();
int which();  // the signal's number, or 0
// For time limits and tests: the loop stops as after a signal, which() stays 0, and a signal that follows is the first
// one.
void request_stop();

}  // namespace quell::signals
