// Messages for people. They go to standard error (and to the run's log file); a command's own output goes to standard
// output. The only user of spdlog is log.cpp. Thread-safe. Only train/report, tools, commands and the launcher print.
#pragma once

#include <string>
#include <string_view>

namespace quell::log {

void info(std::string_view message);
void always(std::string_view message);  // also under --quiet, and where only errors are shown
void warn(std::string_view message);
void error(std::string_view message);

// Nothing below a warning is shown any more; the log file still gets everything.
void set_quiet(bool quiet);
// Of a process beside others that say the same: only errors are shown; after mute() not even those.
void only_errors();
void mute();

// Appends all later messages, with times, to `path`. Throws MachineError where the file cannot be opened.
void also_to_file(const std::string& path);

}  // namespace quell::log
