#include "config/keys.h"

#include "config/node.h"

namespace quell::config {

namespace {

bool fits(const std::string& pattern_path, const std::string& path, bool whole) {
  const std::vector<std::string> pattern = split_path(pattern_path);
  const std::vector<std::string> parts = split_path(path);
  if (whole ? pattern.size() != parts.size() : pattern.size() < parts.size()) return false;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_same = pattern[i] == parts[i] || (pattern[i] == "N" && is_index(parts[i])) ||
                         (pattern[i] == "NAME" && !parts[i].empty() && !is_index(parts[i]));
    if (!is_same) return false;
  }
  return true;
}

}  // namespace

bool matches(const Key& key, const std::string& path) { return fits(key.path, path, true); }
bool begins_with(const Key& key, const std::string& path) { return fits(key.path, path, false); }

const Key* find_key(const std::vector<Key>& keys, const std::string& path) {
  for (const Key& key : keys) {
    if (matches(key, path)) return &key;
  }
  return nullptr;
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string parent_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

bool is_section(const Type& type) {
  return type.shape != Type::Shape::one && type.shape != Type::Shape::list && type.shape != Type::Shape::array;
}

}  // namespace quell::config
