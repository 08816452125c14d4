// What can be written in a run file, for people: one key in full, or all of them as a Markdown page.
#pragma once

#include <string>
#include <vector>

#include "config/keys.h"

namespace quell::config {

// Type, default, unit, range, choices and where it stands; for a section the keys in it. `path` as a user writes it
// ("evaluate.sets.0.name"). UsageError with a hint where there is no such key.
std::string explain(const std::vector<Key>& keys, const std::string& path);
template <class T>
std::string explain(const std::string& path) {
  return explain(keys_of<T>(), path);
}

// A table for each section, alternatives of a variant apart.
std::string reference(const std::vector<Key>& keys);
template <class T>
std::string reference() {
  return reference(keys_of<T>());
}

}  // namespace quell::config
