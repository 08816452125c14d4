// How a lower room tells its caller how far a long piece of work is, and what a person should know although nothing failed,
// without printing: an empty Progress costs nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace quell {

struct Progress {
  std::function<void(const std::string& what, uint64_t done, uint64_t total)> report;
  void operator()(const std::string& what, uint64_t done, uint64_t total) const {
    if (report) report(what, done, total);
  }

  std::function<void(const std::string& line)> on_note = {};
  void note(const std::string& line) const {
    if (on_note) on_note(line);
  }
};

}  // namespace quell
