// Strict YAML on yaml-cpp's event parser: one document of plain maps, lists and scalars. Duplicate keys, anchors,
// aliases, merge keys, tags, complex keys and nesting over 32 levels are mistakes with a place; nothing is ever
// expanded.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/node.h"

namespace quell::config {

struct YamlPart {
  int text = 0;          // index of places
  int column = 0;        // what is added to columns of the first line: an override's value stands behind its key
  bool is_flow = false;  // only a scalar, {...} or [...]: an override's value
  std::string path;      // of the part's root, "" for a file
};

// The root, or nothing where the text cannot be read as YAML. `content` must be strict text (strict_text.h).
std::optional<Node> parse_yaml(const std::string& content, const YamlPart& part, Mistakes& mistakes);

}  // namespace quell::config
