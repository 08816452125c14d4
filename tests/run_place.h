// A folder with a small text as tokens and a run file, in which the program is run.
#pragma once

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "commands_support.h"
#include "temporary.h"

namespace quell::testing {

class RunPlace {
 public:
  explicit RunPlace(const std::string& run_file) {
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 3000; ++i) text << "line " << i * i % 97 << " of a text,\n";
    text.close();
    std::ofstream(folder_ / "run.yaml") << run_file;
    REQUIRE(run("data prepare --tokenizer char --out text text.txt").code == 0);
  }
  Outcome run(const std::string& arguments) const { return run_program(folder_.path(), arguments); }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

}  // namespace quell::testing
