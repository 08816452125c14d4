// From a Source to a struct with describe(): load<RunConfig>(source). All mistakes are reported at once, in order of
// place. What is not written keeps its default; `section:` with nothing below it means defaults too.
//
// check() of a struct runs, innermost structs first, where everything in that struct could be read and no key of it was
// unknown, so that one misspelling is one mistake; derive() rules run in place, as long as all fields above them could
// be read. An absent section is visited like an empty one: its rules and checks hold for defaults as well. Where an
// override switches the kind of a variant, the file's keys that only the other kind has are left out; those of other
// overrides are mistakes.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/describe.h"
#include "config/reading.h"
#include "config/source.h"

namespace quell::config {

namespace detail {

template <class T>
bool load_value(Reading& reading, const Spot& spot, T& value);

// Visits the fields of one struct.
class Loader {
 public:
  Loader(Reading& reading, const Node& map, const std::string& path, std::vector<std::string> names)
      : reading_(reading), map_(map), path_(path), names_(std::move(names)) {}

  template <class T>
  void field(const char* name, T& value, const FieldInfo& info) {
    names_.emplace_back(name);
    const std::string path = path_.empty() ? name : path_ + "." + name;
    const Entry* entry = map_.find(name);
    if (entry) {
      is_complete_ &= load_value(reading_, Spot{entry->value, path, info, &type_of<T>}, value);
    } else if constexpr (Described<T> || Variant<T>) {
      is_complete_ &= load_value(reading_, Spot{reading_.nothing(), path, info, &type_of<T>}, value);
    }
  }
  void derive(const std::function<void()>& rule) {
    if (is_complete_) rule();
  }

  // Whether everything could be read. Unknown keys are noted.
  bool finish() { return reading_.check_names(map_, path_, names_) && is_complete_; }

 private:
  Reading& reading_;
  const Node& map_;
  const std::string& path_;
  std::vector<std::string> names_;
  bool is_complete_ = true;
};

template <class T>
bool load_fields(Reading& reading, const Spot& spot, T& value, std::vector<std::string> names) {
  Loader loader(reading, spot.node, spot.path, std::move(names));
  describe(loader, value);
  if (!loader.finish()) return false;
  if constexpr (Checked<T>) {
    Problems problems;
    check(problems, std::as_const(value));
    reading.note(problems, spot.path);
  }
  return true;
}

template <class... A>
bool load_variant(Reading& reading, const Spot& spot, std::variant<A...>& value) {
  if (!reading.is_section(spot)) return false;
  if (const Entry* kind = spot.node.find("kind")) {
    const std::string path = spot.path + ".kind";
    const Spot kind_spot{kind->value, path, spot.info, [] {
                           Type type = type_of<std::variant<A...>>();
                           type.shape = Type::Shape::one;
                           type.scalar = Type::Scalar::choice;
                           return type;
                         }};
    const int index = reading.read_choice(kind_spot, type_of<std::variant<A...>>().choices);
    if (index < 0) return false;
    int at = 0;
    ((at++ == index && !std::holds_alternative<A>(value) ? void(value.template emplace<A>()) : void()), ...);
  }
  return std::visit([&](auto& held) { return load_fields(reading, spot, held, {"kind"}); }, value);
}

// The elements that the path of an override names; the others keep their values.
template <class List>
bool load_elements(Reading& reading, const Spot& spot, List& value) {
  using Element = typename List::value_type;
  bool is_complete = true;
  for (const Entry& entry : spot.node.entries) {
    const int index = reading.read_index(entry, spot.path, value.size());
    if (index < 0) {
      is_complete = false;
      continue;
    }
    const std::string path = spot.path + "." + entry.key;
    Element element = value[static_cast<size_t>(index)];
    is_complete &= load_value(reading, Spot{entry.value, path, spot.info, &type_of<Element>}, element);
    value[static_cast<size_t>(index)] = std::move(element);
  }
  return is_complete;
}

template <class List>
bool load_list(Reading& reading, const Spot& spot, List& value) {
  using Element = typename List::value_type;
  if (spot.node.kind == Node::Kind::map && spot.node.is_partial) return load_elements(reading, spot, value);
  if (!reading.is_list(spot, value.size(), ArrayField<List>)) return false;
  const std::vector<Node>& items = spot.node.items;
  if constexpr (VectorField<List>) value.assign(items.size(), Element{});
  bool is_complete = true;
  for (size_t i = 0; i < items.size(); ++i) {
    const std::string path = spot.path + "." + std::to_string(i);
    Element element{};
    is_complete &= load_value(reading, Spot{items[i], path, spot.info, &type_of<Element>}, element);
    value[i] = std::move(element);
  }
  return is_complete;
}

template <class Map>
bool load_map(Reading& reading, const Spot& spot, Map& value) {
  using Element = typename Map::mapped_type;
  if (!reading.is_section(spot)) return false;
  if (spot.node.kind == Node::Kind::map && !spot.node.is_partial) value.clear();
  bool is_complete = true;
  for (const Entry& entry : spot.node.entries) {
    if (!reading.read_name(entry, spot.path)) {
      is_complete = false;
      continue;
    }
    const std::string path = spot.path + "." + entry.key;
    if constexpr (requires { value.fallback; }) {
      value.try_emplace(entry.key, value.fallback);
    }
    is_complete &= load_value(reading, Spot{entry.value, path, spot.info, &type_of<Element>}, value[entry.key]);
  }
  return is_complete;
}

template <class T>
bool load_value(Reading& reading, const Spot& spot, T& value) {
  if constexpr (Described<T>) {
    return reading.is_section(spot) && load_fields(reading, spot, value, {});
  } else if constexpr (Variant<T>) {
    return load_variant(reading, spot, value);
  } else if constexpr (MapField<T>) {
    return load_map(reading, spot, value);
  } else if constexpr (VectorField<T> || ArrayField<T>) {
    return load_list(reading, spot, value);
  } else if constexpr (OptionalField<T>) {
    typename T::value_type present{};
    const bool is_absent = reading.is_absent(spot);
    if (!is_absent && !load_value(reading, spot, present)) return false;
    value = is_absent ? T{} : T{std::move(present)};
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    const int index = reading.read_choice(spot, choice_texts<T>);
    if (index >= 0) value = choices<T>[static_cast<size_t>(index)].value;
    return index >= 0;
  } else {
    return reading.read(spot, value);
  }
}

}  // namespace detail

// `extra` adds problems that only the caller can see, after T's own check(); their keys are paths from the top. It runs
// where the whole file could be read. Throws one UsageError with everything that is wrong.
template <class T>
T load(const Source& source, const std::function<void(Problems&, const T&)>& extra = {}) {
  static const FieldInfo info;
  const std::string path;
  Reading reading(source, &keys_of<T>);
  T value{};
  const bool is_complete =
      source.is_readable() && detail::load_value(reading, Spot{source.root(), path, info, &type_of<T>}, value);
  if (is_complete && extra) {
    Problems problems;
    extra(problems, value);
    reading.note(problems, "");
  }
  reading.finish();
  return value;
}

}  // namespace quell::config
