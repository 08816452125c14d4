#include "train/console.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"

namespace quell {

std::string progress_text(const ProgressLine& line, int width) {
  std::vector<std::string> parts{line.steps > 0 ? cat("step ", line.step, "/", line.steps) : cat("step ", line.step),
                                 "loss " + significant(line.loss, 4)};
  if (line.seconds_left >= 0) parts.push_back(human_seconds(line.seconds_left) + " left");
  if (line.items_per_s > 0) parts.push_back(human_count(line.items_per_s) + (line.items == "tokens" ? " tok/s" : " img/s"));
  parts.push_back("lr " + significant(line.lr, 3));
  parts.push_back("norm " + significant(line.grad_norm, 3));
  if (line.peak_share > 0) parts.push_back(cat(std::lround(100 * line.peak_share), " % of peak"));
  std::string text = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    if (text.size() + 2 + parts[i].size() > static_cast<size_t>(width)) break;
    text += "  " + parts[i];
  }
  return text.substr(0, static_cast<size_t>(width));
}

Console::Console(bool quiet) : quiet_(quiet), live_(!quiet && machine::is_terminal(STDERR_FILENO)) {}

Console::~Console() {
  if (drawn_) std::fputs("\n", stderr);
}

void Console::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void Console::progress(const ProgressLine& line) {
  if (quiet_) return;
  if (!live_) {
    log::info(progress_text(line, 200));
    return;
  }
  // One column less than the terminal has: a full line would wrap on some.
  std::fprintf(stderr, "\r%s\033[K", progress_text(line, machine::terminal_width(STDERR_FILENO) - 1).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Console::say(const std::string& text) {
  clear();
  log::info(text);
}

void Console::warn(const std::string& text) {
  clear();
  log::warn(text);
}

}  // namespace quell
