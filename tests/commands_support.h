// Runs the built program inside a folder and gives back what it said.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/text.h"

namespace quell::testing {

struct Outcome {
  int code = 0;
  std::string out, err;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// `before` is shell in front of the program (ulimit, env). Neither may hold a single quote.
inline Outcome run_program(const std::string& folder, const std::string& arguments, const std::string& before = "") {
  const std::string command = cat("cd ", folder, " && ", before, " exec ", QUELL_PROGRAM, " ", arguments,
                                  " >out.txt 2>err.txt </dev/null");
  const int status = std::system(cat("sh -c '", command, "'").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), slurp(folder + "/out.txt"), slurp(folder + "/err.txt")};
}

}  // namespace quell::testing
