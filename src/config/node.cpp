#include "config/node.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace quell::config {

const Entry* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

Entry* Node::find(std::string_view key) { return const_cast<Entry*>(std::as_const(*this).find(key)); }

std::string what(const Node& node) {
  switch (node.kind) {
    case Node::Kind::scalar: return node.is_quoted ? cat("the quoted text ", quoted(node.text)) : quoted(node.text);
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a map";
    default: return "nothing";
  }
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_index(std::string_view part) {
  return !part.empty() && part.size() < 10 && part.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace quell::config
