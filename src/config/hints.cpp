#include "config/hints.h"

#include <algorithm>

#include "base/text.h"
#include "config/node.h"

namespace quell::config {
namespace {

constexpr size_t most_places = 3;
constexpr size_t longest_word = 64;  // edit distances of longer ones are not worth their time

// "Weight-Decay" -> "weight_decay"
std::string normal(const std::string& name) {
  std::string out = name;
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(c)); });
  return out;
}

std::string did_you_mean(const std::string& word) { return cat("did you mean \"", word, "\"?"); }

std::string either(const std::vector<std::string>& choices) {
  std::string out;
  for (size_t i = 0; i < choices.size(); ++i)
    out += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  return out;
}

const ForeignName* find_foreign(const std::string& name) {
  for (const ForeignName& foreign : foreign_names()) {
    if (name == foreign.name) return &foreign;
  }
  return nullptr;
}

std::string foreign_hint(const std::vector<Key>& keys, const std::string& name) {
  const ForeignName* foreign = find_foreign(normal(name));
  if (!foreign) return "";
  const bool has_key = *foreign->key && find_key(keys, foreign->key);
  if (has_key) {
    return cat("what other trainers call ", foreign->name, " is ", foreign->key, " here", *foreign->remark ? ": " : "",
               foreign->remark);
  }
  return *foreign->key ? "" : foreign->remark;
}

// A key of another alternative of the same section.
std::string other_alternative(const std::vector<Key>& keys, const std::string& path) {
  const Key* key = find_key(keys, path);
  return key && !key->condition.empty() ? cat("it belongs to ", key->condition) : "";
}

// The sections that have a key of this name.
std::string elsewhere(const std::vector<Key>& keys, const std::string& section, const std::string& name) {
  std::vector<std::string> places;
  bool is_top = false;
  for (const Key& key : keys) {
    const std::string parent = parent_of(key.path);
    if (last_part(key.path) != normal(name) || parent == section) continue;
    if (parent.empty()) {
      is_top = true;
    } else if (std::find(places.begin(), places.end(), parent) == places.end()) {
      places.push_back(parent);
    }
  }
  if (places.size() > most_places || (places.empty() && !is_top)) return "";
  std::string where = places.empty() ? "" : " under " + either(places);
  if (is_top) where += places.empty() ? " at the top level" : " or at the top level";
  return cat(quoted(normal(name)), " belongs", where);
}

std::string nearest_elsewhere(const std::vector<Key>& keys, const std::string& name) {
  std::vector<std::string> names;
  for (const Key& key : keys) names.push_back(last_part(key.path));
  const std::string near = closest(normal(name), names);
  if (near.size() < 4) return "";  // short words are near to everything
  for (const Key& key : keys) {
    if (last_part(key.path) == near) return did_you_mean(key.path);
  }
  return "";
}

// Mistakes of form that make a key unknown.
std::string form_hint(const std::vector<Key>& keys, const std::string& path, const std::string& name) {
  if (name.find('.') != std::string::npos && (find_key(keys, path) || find_key(keys, name))) {
    return cat("in a file, write it nested", find_key(keys, path) ? "" : " at the top level", ": ", parent_of(name),
               ": {", last_part(name), ": ...}");
  }
  const size_t colon = name.find(':');
  return colon == std::string::npos
             ? ""
             : cat("put a space behind the colon: ", name.substr(0, colon), ": ", name.substr(colon + 1));
}

}  // namespace

std::vector<std::string> hints(const std::vector<Key>& keys, const std::string& section, const std::string& name,
                               const std::vector<std::string>& siblings) {
  if (name.size() > longest_word) return {};
  if (std::find(siblings.begin(), siblings.end(), normal(name)) != siblings.end()) return {did_you_mean(normal(name))};
  const std::string path = section.empty() ? name : section + "." + name;
  if (const std::string hint = other_alternative(keys, path); !hint.empty()) return {hint};
  if (const std::string hint = form_hint(keys, path, name); !hint.empty()) return {hint};
  if (const std::string hint = foreign_hint(keys, name); !hint.empty()) return {hint};
  if (const std::string hint = elsewhere(keys, section, name); !hint.empty()) return {hint};
  if (const std::string near = closest(normal(name), siblings); !near.empty()) return {did_you_mean(near)};
  if (const std::string hint = nearest_elsewhere(keys, name); !hint.empty()) return {hint};
  if (siblings.empty()) return {};
  return {"allowed here: " + join(siblings, ", ")};
}

std::vector<std::string> path_hints(const std::vector<Key>& keys, const std::string& path) {
  std::string section;
  for (const std::string& part : split_path(path)) {
    const std::string longer = section.empty() ? part : section + "." + part;
    std::vector<std::string> siblings;
    bool is_known = false;
    for (const Key& key : keys) {
      is_known = is_known || begins_with(key, longer);
      const std::string parent = parent_of(key.path);
      if (parent.empty() ? section.empty() : matches({parent, "", {}, {}, ""}, section))
        siblings.push_back(last_part(key.path));
    }
    if (!is_known) {
      std::vector<std::string> lines = hints(keys, section, part, siblings);
      if (const std::string near = closest(normal(part), siblings); !section.empty() && lines == std::vector{did_you_mean(near)}) {
        lines = {did_you_mean(section + "." + near)};  // what was asked for is a whole path, and so is the answer
      }
      return lines;
    }
    section = longer;
  }
  return {};
}

}  // namespace quell::config
