// The console of a run: one live line on a terminal (redrawn in place, never wider than the terminal), plain lines elsewhere.
// Standard error, like every message; nothing is drawn under --quiet.
#pragma once

#include <string>

namespace quell {

// Numbers of one report, as the line shows them.
struct ProgressLine {
  int64_t step = 0, steps = 0;  // steps 0: no plan
  double loss = 0, lr = 0, grad_norm = 0;
  std::string items = "tokens";
  double items_per_s = 0;       // 0: not known yet
  double peak_share = 0;        // of the probe's peak; 0: not known
  double seconds_left = -1;     // negative: not known
};
// At most `width` columns; what matters least is left out first.
std::string progress_text(const ProgressLine& line, int width);

class Console {
 public:
  explicit Console(bool quiet);
  ~Console();  // ends the live line
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void progress(const ProgressLine& line);
  // A line that stays, above the live line.
  void say(const std::string& text);
  void warn(const std::string& text);

 private:
  void clear();
  bool quiet_, live_;
  bool drawn_ = false;
};

}  // namespace quell
