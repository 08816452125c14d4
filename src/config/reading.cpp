#include "config/reading.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/hints.h"

namespace quell::config {
namespace {

constexpr size_t most_hints = 50;  // a hostile file may hold 100,000 unknown keys

std::string below(const std::string& path, const std::string& key) { return path.empty() ? key : path + "." + key; }

bool is_name(const std::string& text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

void Reading::note_value(const Spot& spot, const Complaint& complaint) {
  if (spot.node.kind == Node::Kind::broken) return;
  const Type type = spot.type();
  std::string message = complaint.message;
  std::vector<std::string> notes;
  if (message.empty()) message = cat("expected ", expected(type, spot.info), ", got ", what(spot.node));
  if (!complaint.note.empty()) notes.push_back(complaint.note);
  notes.push_back("allowed: " + allowed(type, spot.info));
  mistakes_.add({spot.node.place, cat(spot.path, ": ", message), std::move(notes), {}});
}

template <class T>
bool Reading::read_scalar(const Spot& spot, T& value) {
  const Node& node = spot.node;
  if (node.kind != Node::Kind::scalar) {
    const bool is_nothing = node.kind == Node::Kind::nothing;
    note_value(spot, {"", is_nothing        ? "remove the key for its default"
                          : node.is_partial ? "nothing stands below a value"
                                            : ""});
    return false;
  }
  if (node.is_quoted) {
    note_value(spot, {"", "write it without quotes"});
    return false;
  }
  T read{};
  if (auto complaint = parse(node.text, spot.info, read)) {
    const bool is_near =
        spot.type().is_optional && node.text.size() < 16 && !closest(node.text, {spot.info.absent_word}).empty();
    if (complaint->note.empty() && is_near) complaint->note = cat("did you mean \"", spot.info.absent_word, "\"?");
    note_value(spot, *complaint);
    return false;
  }
  if constexpr (!std::is_same_v<T, bool>) {
    if (const std::string way = outside(spot.info, static_cast<long double>(read)); !way.empty()) {
      note_value(spot, {cat(node.text, " is ", way), ""});
      return false;
    }
  }
  value = read;
  return true;
}
template bool Reading::read_scalar(const Spot&, bool&);
template bool Reading::read_scalar(const Spot&, int64_t&);
template bool Reading::read_scalar(const Spot&, double&);

bool Reading::read(const Spot& spot, std::string& value) {
  if (spot.node.kind != Node::Kind::scalar) {
    const bool is_nothing = spot.node.kind == Node::Kind::nothing;
    note_value(spot, {"", is_nothing ? "write \"\" for an empty text, or remove the key for its default" : ""});
    return false;
  }
  value = spot.node.text;
  return true;
}

int Reading::read_choice(const Spot& spot, std::span<const ChoiceText> choices) {
  if (spot.node.kind != Node::Kind::scalar) {
    note_value(spot, {"", spot.node.kind == Node::Kind::nothing ? "remove the key for its default" : ""});
    return -1;
  }
  std::vector<std::string> names;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (spot.node.text == choices[i].name) return static_cast<int>(i);
    names.emplace_back(choices[i].name);
  }
  if (spot.type().is_optional) names.emplace_back(spot.info.absent_word);
  const std::string near = spot.node.text.size() > 64 ? "" : closest(spot.node.text, names);
  note_value(spot,
             {"unknown choice " + quoted(spot.node.text), near.empty() ? "" : cat("did you mean \"", near, "\"?")});
  return -1;
}

bool Reading::read_name(const Entry& entry, const std::string& path) {
  if (is_name(entry.key)) return true;
  mistakes_.add({entry.place,
                 cat(path, ": ", quoted(entry.key), " is not a name"),
                 {"allowed: letters, digits and _, beginning with a letter"},
                 {}});
  return false;
}

int Reading::read_index(const Entry& entry, const std::string& path, size_t size) {
  if (is_index(entry.key) && std::stoul(entry.key) < size) return std::stoi(entry.key);
  mistakes_.add({entry.place,
                 cat(path, ": has no element ", quoted(entry.key)),
                 {size == 0 ? "the list is empty" : cat("elements: 0 to ", size - 1)},
                 {}});
  return -1;
}

bool Reading::is_absent(const Spot& spot) const {
  return spot.node.kind == Node::Kind::scalar && !spot.node.is_quoted && spot.node.text == spot.info.absent_word;
}

bool Reading::is_section(const Spot& spot) {
  if (spot.node.kind == Node::Kind::map || spot.node.kind == Node::Kind::nothing) return true;
  note_wrong_type(spot);
  return false;
}

bool Reading::is_list(const Spot& spot, size_t length, bool exact) {
  if (spot.node.kind != Node::Kind::list) {
    const bool is_single = spot.node.kind == Node::Kind::scalar;
    note_value(spot, {"", is_single ? cat("a list of one element is written [", spot.node.text, "]") : ""});
    return false;
  }
  if (!exact || spot.node.items.size() == length) return true;
  note_value(spot, {cat("expected ", length, " elements, got ", spot.node.items.size()), ""});
  return false;
}

// Whether a key of the file belongs to another alternative than the one that an override switched to.
bool Reading::is_left_over(const Entry& entry, const std::string& path) const {
  if (entry.value.place.text != 0) return false;
  const Key* key = find_key(keys_(), below(path, entry.key));
  return key && key->condition.starts_with(below(path, "kind: "));
}

bool Reading::check_names(const Node& map, const std::string& path, const std::vector<std::string>& names) {
  const Entry* kind = map.find("kind");
  const bool is_switched = kind && kind->value.place.text != 0;
  bool all_known = true;
  for (const Entry& entry : map.entries) {
    if (std::find(names.begin(), names.end(), entry.key) != names.end()) continue;
    if (is_switched && is_left_over(entry, path)) continue;
    all_known = false;
    std::vector<std::string> notes;
    if (mistakes_.size() < most_hints) notes = hints(keys_(), path, entry.key, names);
    mistakes_.add({entry.place, below(path, entry.key) + ": unknown key", std::move(notes), {}});
  }
  return all_known;
}

void Reading::note(const Problems& problems, const std::string& path) {
  for (const Problems::Problem& problem : problems.all()) {
    const std::string key = problem.key.empty() ? path : below(path, problem.key);
    const Source::Found found = source_.find(key);
    std::vector<std::string> notes;
    if (!problem.fix.empty()) notes.push_back(problem.fix);
    const Key* known = find_key(keys_(), key);
    if (!found.is_exact && known && !config::is_section(known->type))
      notes.push_back(key + " is not written: the value is a default");
    mistakes_.add({found.place, cat(key, key.empty() ? "" : ": ", problem.message), std::move(notes), {}});
  }
}

void Reading::finish() const {
  if (!mistakes_.empty()) throw UsageError(render(source_.texts(), mistakes_));
}

}  // namespace quell::config
