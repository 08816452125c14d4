// Slurm's compressed lists: "n[1-3,07],gpu2" to host names, "2(x2),1" to numbers of tasks.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace quell {

// In order. Nothing where the text is no such list (unbalanced brackets, a range that goes down), or names over 100,000 hosts.
std::optional<std::vector<std::string>> expand_hosts(const std::string& list);
// Likewise; every number at least 1.
std::optional<std::vector<int>> expand_counts(const std::string& list);

}  // namespace quell
