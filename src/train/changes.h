// What a resumed run's file says otherwise than the checkpoint's: every changed key is told, and none wins silently.
#pragma once

#include <string>
#include <vector>

#include "train/config.h"

namespace quell {

enum class ChangeKind {
  safe,       // taken: no number of training depends on it
  numbers,    // changes what is computed from here on: taken where it is accepted by name
  impossible  // the saved state does not fit it
};

struct Change {
  std::string key, before, after;
  ChangeKind kind = ChangeKind::numbers;
  std::string why;  // of what is not safe
};

// How a change of this key is judged, and why.
Change judged(const std::string& key);

// Both as resolved by a run.
std::vector<Change> changes(const RunConfig& before, const RunConfig& after);

// Lines "key: before -> after (why)" for every change.
std::vector<std::string> change_lines(const std::vector<Change>& changes);

// Throws UsageError with all that keep the run from going on: what is impossible, and what changes numbers but is not among
// `accepted` (keys, or sections for all in them).
void require_accepted(const std::vector<Change>& changes, const std::vector<std::string>& accepted);

}  // namespace quell
