// What a user may have meant by a key that does not exist: a misspelling, a key of another section, or the name that
// another trainer gives to it. Names of other trainers are only recognised here, never accepted.
#pragma once

#include <string>
#include <vector>

#include "config/keys.h"

namespace quell::config {

// Lines to show below `section`.`name`: unknown key, the best guess only; where there is none, the keys that are
// allowed there. `section` is a path as the user wrote it, "" for the top level; `siblings` are the keys that it has.
std::vector<std::string> hints(const std::vector<Key>& keys, const std::string& section, const std::string& name,
                               const std::vector<std::string>& siblings);

// The same for a whole path that a user asks for ("explain optimizer.lrr").
std::vector<std::string> path_hints(const std::vector<Key>& keys, const std::string& path);

struct ForeignName {
  const char* name;    // in lower case with underscores
  const char* key;     // ours, or "" where there is none
  const char* remark;  // "" or what differs
};
const std::vector<ForeignName>& foreign_names();

}  // namespace quell::config
