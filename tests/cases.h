// The cases of a row of the reliability table (docs/reliability.md): few of them where a change is tested, many under
// `scripts/reliability --full`. Each test says what it did: a line "ID CASES" in the file that QUELL_TALLY names, if it names one.
#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

namespace quell::testing {

inline bool in_full() {
  const char* wanted = std::getenv("QUELL_RELIABILITY");
  return wanted != nullptr && std::string(wanted) == "full";
}

class Cases {
 public:
  // for (Cases cases("K1", 15, 500); cases.next();) ... with `cases.number()` from 0.
  Cases(const char* id, int few, int many) : id_(id), wanted_(in_full() ? many : few) {}
  // For tests that find out themselves how many there are; each is told by add().
  explicit Cases(const char* id) : Cases(id, 0, 0) {}
  ~Cases() {
    if (const char* tally = std::getenv("QUELL_TALLY")) std::ofstream(tally, std::ios::app) << id_ << " " << done_ << "\n";
  }
  Cases(const Cases&) = delete;
  Cases& operator=(const Cases&) = delete;

  bool next() {
    if (in_one_) add();
    in_one_ = done_ < wanted_;
    return in_one_;
  }
  int number() const { return done_; }
  int wanted() const { return wanted_; }
  void add() { ++done_; }
  int done() const { return done_; }

 private:
  const char* id_;
  int wanted_, done_ = 0;
  bool in_one_ = false;  // which counts once it has ended
};

}  // namespace quell::testing
