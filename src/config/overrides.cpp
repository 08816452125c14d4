#include "config/overrides.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "config/strict_text.h"
#include "config/yaml.h"

namespace quell::config {
namespace {

// One override while it is taken apart.
class Reader {
 public:
  Reader(const std::string& written, int text, size_t shift, Mistakes& mistakes)
      : written_(written), text_(text), shift_(shift), mistakes_(mistakes) {}

  // The offset of "=", or npos.
  size_t find_equals();
  bool read_key(size_t equals, std::vector<Assignment::Part>& path);
  std::optional<Node> read_value(size_t equals);

 private:
  Place place(size_t begin, size_t width) const {
    return {text_, 1, static_cast<int>(shift_ + begin) + 1, static_cast<int>(std::max<size_t>(width, 1))};
  }
  void note(size_t begin, size_t width, const std::string& message, const std::string& fix) {
    mistakes_.add({place(begin, width), message, {fix}, {}});
  }

  const std::string& written_;
  int text_;
  size_t shift_;
  Mistakes& mistakes_;
};

size_t Reader::find_equals() {
  if (const size_t end = written_.find('\n'); end != std::string::npos) {
    note(0, end, "an override is one line", "write a line end as \\n inside double quotes");
    return std::string::npos;
  }
  Mistakes found;
  if (!is_strict_text(written_, text_, found)) {
    Mistake mistake = found.kept()[0];
    mistake.place.column += static_cast<int>(shift_);
    mistakes_.add(std::move(mistake));
    return std::string::npos;
  }
  const size_t equals = written_.find('=');
  if (equals == std::string::npos) {
    note(0, written_.size(), "an override is KEY=VALUE", "like optimizer.lr=3e-4, without spaces around \"=\"");
  }
  return equals;
}

bool Reader::read_key(size_t equals, std::vector<Assignment::Part>& path) {
  const std::string key = written_.substr(0, equals);
  size_t begin = 0;
  for (const std::string& name : split_path(key)) {
    if (name.empty() || name.find(' ') != std::string::npos) {
      note(begin, name.size(), quoted(key) + " is not a key", "a key is words between dots, like optimizer.lr");
      return false;
    }
    path.push_back({name, place(begin, name.size())});
    begin += name.size() + 1;
  }
  if (path.size() > static_cast<size_t>(largest_depth)) {
    note(0, equals, cat("nested more than ", largest_depth, " levels deep"), "no key of a run file stands so deep");
    return false;
  }
  return true;
}

std::optional<Node> Reader::read_value(size_t equals) {
  const std::string key = written_.substr(0, equals);
  const std::string value = written_.substr(equals + 1);
  const size_t first = value.find_first_not_of(' ');
  if (first == std::string::npos) {
    note(equals, 1, key + ": no value behind \"=\"", cat("for an empty text write '", key, "=\"\"'"));
    return std::nullopt;
  }
  const YamlPart part{text_, static_cast<int>(shift_ + equals) + 1, true, key};
  std::optional<Node> node = parse_yaml(value, part, mistakes_);
  if (!node || node->kind == Node::Kind::broken) return std::nullopt;
  // In YAML " #" begins a comment; on a command line nobody means one.
  const size_t last = value.find_last_not_of(' ');
  const bool is_bracket = node->kind == Node::Kind::list || node->kind == Node::Kind::map;
  const auto end = static_cast<size_t>(node->place.column + node->place.width - part.column - 1);
  if (value[first] == '#' || (is_bracket ? value[last] != ']' && value[last] != '}' : end <= last)) {
    note(equals + 1, value.size(), key + ": what stands behind \"#\" would be a comment",
         "put the whole value in quotes");
    return std::nullopt;
  }
  return node;
}

void merge(Node& into, Node value) {
  if (into.kind != Node::Kind::map || value.kind != Node::Kind::map) {
    into = std::move(value);
    return;
  }
  for (Entry& entry : value.entries) {
    if (Entry* old = into.find(entry.key)) {
      if (entry.value.kind != Node::Kind::map) old->place = entry.place;
      merge(old->value, std::move(entry.value));
    } else {
      into.entries.push_back(std::move(entry));
    }
  }
}

// The node that `part` names inside `node`, made where it is missing; null where there can be none.
Node* descend(Node& node, const Assignment::Part& part, const std::string& path, const std::vector<Text>& texts,
              Mistakes& mistakes) {
  const auto note = [&](const std::string& message, const std::string& fix) {
    mistakes.add({part.place, cat(path, ": ", message), {fix}, {}});
    return nullptr;
  };
  if (node.kind == Node::Kind::broken) return nullptr;
  if (node.kind == Node::Kind::scalar) {
    return note(cat("is ", what(node), " in ", label(texts, node.place)), "nothing can be set below a value");
  }
  if (node.kind == Node::Kind::list) {
    const size_t size = node.items.size();
    if (is_index(part.name) && std::stoul(part.name) < size) return &node.items[std::stoul(part.name)];
    return note(cat("has no element ", quoted(part.name)),
                size == 0 ? "the list is empty" : cat("elements: 0 to ", size - 1));
  }
  if (node.kind == Node::Kind::nothing) {
    node.kind = Node::Kind::map;
    node.is_partial = true;
  }
  if (Entry* entry = node.find(part.name)) return &entry->value;
  Node made;
  made.place = part.place;
  node.entries.push_back({part.name, part.place, std::move(made)});
  return &node.entries.back().value;
}

}  // namespace

std::optional<Assignment> parse_override(const std::string& written, int text, size_t shift, Mistakes& mistakes) {
  Reader reader(written, text, shift, mistakes);
  const size_t equals = reader.find_equals();
  Assignment out;
  if (equals == std::string::npos || !reader.read_key(equals, out.path)) return std::nullopt;
  std::optional<Node> value = reader.read_value(equals);
  if (!value) return std::nullopt;
  out.value = std::move(*value);
  return out;
}

void assign(Node& root, Assignment assignment, const std::vector<Text>& texts, Mistakes& mistakes) {
  Node* node = &root;
  std::string path;
  for (const Assignment::Part& part : assignment.path) {
    Node* parent = node;
    node = descend(*parent, part, path, texts, mistakes);
    if (!node) return;
    path += path.empty() ? part.name : "." + part.name;
    const bool replaces = &part == &assignment.path.back() && assignment.value.kind != Node::Kind::map;
    if (Entry* entry = replaces ? parent->find(part.name) : nullptr) entry->place = part.place;
  }
  merge(*node, std::move(assignment.value));
}

}  // namespace quell::config
