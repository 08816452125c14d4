#include "config/source.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "config/overrides.h"
#include "config/strict_text.h"
#include "config/yaml.h"

namespace quell::config {
namespace {

constexpr const char* byte_order_mark = "\xEF\xBB\xBF";

void check_file(const std::string& path) {
  if (!files::exists(path)) {
    const size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const std::string near = files::is_folder(folder) ? closest(path.substr(slash + 1), files::list(folder)) : "";
    const std::string hint = slash == std::string::npos ? near : folder + near;
    throw UsageError(cat(path, ": no such file", near.empty() ? "" : cat("\n  did you mean ", hint, "?")));
  }
  if (files::is_folder(path)) throw UsageError(path + ": is a folder, not a run file");
  if (const uint64_t size = files::size(path); size > largest_file) {
    throw UsageError(cat(path, ": is ", human_bytes(static_cast<double>(size)), " large\n  allowed: at most ",
                         human_bytes(static_cast<double>(largest_file)), "; is this really a run file?"));
  }
}

}  // namespace

Source Source::from_file(const std::string& path, const std::vector<Override>& overrides) {
  check_file(path);
  return from_text(files::read(path, largest_file), path, overrides);
}

Source Source::from_text(std::string text, std::string name, const std::vector<Override>& overrides) {
  if (text.size() > largest_file) throw UsageError(cat(name, ": is larger than 1 MiB\n  allowed: at most 1 MiB"));
  if (text.starts_with(byte_order_mark)) text.erase(0, 3);
  Source source;
  source.texts_.push_back({std::move(name), std::move(text), true});
  source.read_file();
  for (const Override& override : overrides) source.apply(override);
  return source;
}

void Source::read_file() {
  std::optional<Node> root;
  if (is_strict_text(texts_[0].content, 0, mistakes_)) {
    root = parse_yaml(texts_[0].content, {}, mistakes_);
    if (root && root->kind == Node::Kind::nothing) {
      mistakes_.add({{0, 0, 0, 1}, "the file is empty", {"a run file holds at least one `key: value` line"}, {}});
    } else if (root && (root->kind == Node::Kind::scalar || root->kind == Node::Kind::list)) {
      mistakes_.add({root->place,
                     cat("expected `key: value` lines, got ", what(*root)),
                     {"a space stands between the colon and the value"},
                     {}});
    }
  }
  is_readable_ = root && root->kind == Node::Kind::map;
  if (is_readable_) root_ = std::move(*root);
  root_.kind = Node::Kind::map;
}

void Source::apply(const Override& override) {
  const std::string shown = (override.is_set ? "--set " : "") + override.text;
  texts_.push_back({shown, shown, false});
  const int text = static_cast<int>(texts_.size()) - 1;
  if (auto assignment = parse_override(override.text, text, shown.size() - override.text.size(), mistakes_)) {
    assign(root_, std::move(*assignment), texts_, mistakes_);
  }
}

Source::Found Source::find(const std::string& path) const {
  Found found{{0, 0, 0, 1}, path.empty()};
  const Node* node = &root_;
  for (const std::string& part : split_path(path)) {
    const Entry* entry = node->find(part);
    if (entry) {
      node = &entry->value;
      // A section is shown by its key, a value by itself.
      found.place = node->kind == Node::Kind::scalar || node->kind == Node::Kind::list ? node->place : entry->place;
    } else if (node->kind == Node::Kind::list && is_index(part) && std::stoul(part) < node->items.size()) {
      node = &node->items[std::stoul(part)];
      found.place = node->place;
    } else {
      return found;
    }
  }
  found.is_exact = node->kind != Node::Kind::nothing;
  return found;
}

}  // namespace quell::config
