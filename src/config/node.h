// A YAML document as it was written: scalars as text, each part with its place. Types are the business of
// config/load.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/mistake.h"

namespace quell::config {

struct Entry;

struct Node {
  enum class Kind {
    nothing,  // `key:` with nothing behind it, ~ or null
    scalar,
    list,
    map,
    broken  // could not be read; the mistake is noted, and nothing more is said of it
  };
  Kind kind = Kind::nothing;
  bool is_quoted = false;  // a scalar in quotes, or a block scalar
  // A map that only the path of an override made: the keys beside it keep their values, and digits count elements.
  bool is_partial = false;
  std::string text;
  Place place;
  std::vector<Node> items;
  std::vector<Entry> entries;

  const Entry* find(std::string_view key) const;
  Entry* find(std::string_view key);
};

struct Entry {
  std::string key;
  Place place;
  Node value;
};

// What a user sees of it in "expected an integer, got ...".
std::string what(const Node& node);

std::vector<std::string> split_path(const std::string& path);  // "a.b.c" -> a, b, c
bool is_index(std::string_view part);                          // digits only, fewer than ten

}  // namespace quell::config
