// What people ask of checkpoints: which are there, are they sound, what is in them, how do two differ.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/checkpoint.h"

namespace quell {

// DIR itself where it is a checkpoint, or the newest sound one of the run.
Checkpoint checkpoint_at(const std::string& dir);

struct Answer {
  std::string text;  // for people, within 80 columns but for paths
  Json json;
  bool yes = true;   // to "is it sound", "are they the same"
};

// DIR is a run's folder or its folder of checkpoints. All of them throw UsageError where there is nothing of the kind.
Answer list_checkpoints_of(const std::string& dir);

// Every byte of every checkpoint of DIR, or of DIR itself.
Answer verify_checkpoints(const std::string& dir);

// The manifest in words: step, run, versions, numbers, every tensor with type, shape, size.
Answer inspect_checkpoint(const std::string& dir);

// Tensor by tensor: the largest difference, in the tensor's own numbers and in steps of its type (ulp), and where it begins; and
// the keys of the configuration that differ.
Answer diff_checkpoints(const std::string& a, const std::string& b);

// Removes what need not stay by `keep`; dry: only says so.
Answer prune_checkpoints(const std::string& dir, const CheckpointConfig& keep, bool dry);

}  // namespace quell
