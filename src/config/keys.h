// The list of all keys that describe() gives for a struct, sections before what is in them: the ground of hints,
// explain, the reference page and, later, completion.
#pragma once

#include <string>
#include <vector>

#include "config/types.h"

namespace quell::config {

struct Key {
  // "evaluate.sets.N.name", "model.variants.NAME.window": N stands for an index, NAME for a name of the user's choice.
  std::string path;
  std::string condition;  // "data.kind: tokens" for a key of one alternative, else ""
  Type type;
  FieldInfo info;
  std::string standard;  // the default as it would be written; "" for a section
};

// Whether `path`, as a user writes it, is the key.
bool matches(const Key& key, const std::string& path);
bool begins_with(const Key& key, const std::string& path);  // whether it is the key or something around it
const Key* find_key(const std::vector<Key>& keys, const std::string& path);
std::string last_part(const std::string& path);
std::string parent_of(const std::string& path);  // "" for a key of the top level
bool is_section(const Type& type);               // a section of any shape

namespace detail {

class KeyLister {
 public:
  KeyLister(std::vector<Key>& out, std::string prefix, std::string condition)
      : out_(out), prefix_(std::move(prefix)), condition_(std::move(condition)) {}

  template <class T>
  void field(const char* name, T& value, const FieldInfo& info) {
    const std::string path = prefix_ + name;
    std::string standard;
    if constexpr (SectionList<T>) {
      standard = value.empty() ? "[]" : std::to_string(value.size()) + " elements";
    } else if constexpr (!Described<T> && !Variant<T> && !MapField<T>) {
      standard = value_text(value, info);
    }
    out_.push_back({path, condition_, type_of<T>(), info, std::move(standard)});
    list(path + ".", value);
  }
  void derive(const std::function<void()>&) {}

  template <class T>
  void list(const std::string& prefix, T& value) {
    if constexpr (Described<T>) {
      KeyLister inner(out_, prefix, condition_);
      describe(inner, value);
    } else if constexpr (Variant<T>) {
      list_alternatives(prefix, value);
    } else if constexpr (MapField<T>) {
      typename T::mapped_type element{};
      list(prefix + "NAME.", element);
    } else if constexpr (SectionList<T>) {
      typename T::value_type element{};
      list(prefix + "N.", element);
    }
  }

 private:
  template <class... A>
  void list_alternatives(const std::string& prefix, std::variant<A...>& value) {
    const std::string path = prefix + "kind";
    std::string kind;
    std::visit([&](const auto& held) { kind = held.kind_name; }, value);
    Type type = type_of<std::variant<A...>>();
    type.shape = Type::Shape::one;
    type.scalar = Type::Scalar::choice;
    out_.push_back({path, condition_, type, help("Which alternative; the other keys follow from it."), kind});
    (list_alternative<A>(prefix, path), ...);
  }
  template <class A>
  void list_alternative(const std::string& prefix, const std::string& kind) {
    A alternative{};
    KeyLister inner(out_, prefix, kind + ": " + A::kind_name);
    describe(inner, alternative);
  }

  std::vector<Key>& out_;
  std::string prefix_, condition_;
};

}  // namespace detail

template <class T>
const std::vector<Key>& keys_of() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> out;
    T value{};
    detail::KeyLister(out, "", "").list("", value);
    return out;
  }();
  return keys;
}

}  // namespace quell::config
