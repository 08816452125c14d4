// Overrides of the command line, KEY=VALUE: the key's parts are separated by dots (`optimizer.lr`,
// `evaluate.sets.0.data`), the value is YAML of the same strict rules as a file's, on one line. Later ones win. A map
// is merged into the section that is there, key by key. Whether a key exists is not known here: config/load.h finds
// that out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace quell::config {

struct Override {
  std::string text;     // "model.layers=12"
  bool is_set = false;  // given behind --set, which messages repeat
};

struct Assignment {
  struct Part {
    std::string name;
    Place place;
  };
  std::vector<Part> path;
  Node value;
};

// `text` is the index of places; `shift` is the number of bytes shown before the override. Nothing where it is a
// mistake.
std::optional<Assignment> parse_override(const std::string& written, int text, size_t shift, Mistakes& mistakes);

void assign(Node& root, Assignment assignment, const std::vector<Text>& texts, Mistakes& mistakes);

}  // namespace quell::config
