// The folder of a run's checkpoints: which are there, which one a run goes on from, which stay.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"

namespace quell {

// Says what was done that a person should know of.
using Note = std::function<void(const std::string&)>;

struct Entry {
  int64_t step = 0;  // by its name
  std::string path;
};
// Folders named step-N, whatever is in them, by step: by number, not by spelling. Empty where there is no such folder.
std::vector<Entry> list_checkpoints(const std::string& folder);

// The newest that is whole, every byte of it. `note` tells of each newer one that is not, and why. `run`: only checkpoints of that
// run count, unless it is empty. Throws MachineError where one cannot be read now, which says nothing of what is in it.
std::optional<Checkpoint> newest_sound(const std::string& folder, const std::string& run, const Note& note);

// Removes what unfinished saves and removals have left. Only whoever holds the run's lock may call it.
void remove_leftovers(const std::string& folder, const Note& note);

// What need not stay by `config`: a checkpoint stays that is among the last `keep_last` of its run, is a multiple of `keep_every`, has
// the best number `keep_best` (the first of equals), or is one of the last two of the steps `verified`, of which every byte is known
// to be right. What is not a checkpoint of that run, or of a step after the last of `verified`, is neither counted nor touched.
std::vector<std::string> not_kept(const std::string& folder, const std::string& run, const CheckpointConfig& config, const std::set<int64_t>& verified);
// Removes it and returns the paths.
std::vector<std::string> retain(const std::string& folder, const std::string& run, const CheckpointConfig& config, const std::set<int64_t>& verified);

}  // namespace quell
