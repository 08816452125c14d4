// A struct as a complete run file: every key with its value, so that load(print(x)) is x. With origins, each value is
// followed by where it came from: the run file's place, the override's text, "default", or "derived" where a rule
// changed the default.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/describe.h"
#include "config/source.h"
#include "config/types.h"

namespace quell::config {

// One key with its value as it will be written.
struct Printed {
  enum class Shape { value, section, list };  // list: of sections
  Shape shape = Shape::value;
  std::string key;          // "" for an element of a list
  std::string text;         // of a value
  std::string alternative;  // of a variant
  std::vector<Printed> children;
  // The children's defaults where the default struct holds no such thing: elements, other alternatives.
  std::vector<Printed> standard;
};

std::string layout(const Printed& root);
// Every value under its whole path ("optimizer.groups.bias.decay").
std::map<std::string, std::string> flattened(const Printed& root);
std::string layout_with_origins(const Printed& root, const Printed& standard, const Source& source);

namespace detail {

class Printer {
 public:
  explicit Printer(std::vector<Printed>& out) : out_(out) {}

  template <class T>
  void field(const char* name, T& value, const FieldInfo& info) {
    out_.push_back(describe_value(name, value, info));
  }
  void derive(const std::function<void()>&) {}

  template <class T>
  static Printed describe_value(const std::string& key, T& value, const FieldInfo& info) {
    Printed out;
    out.key = key;
    if constexpr (Described<T>) {
      out.shape = Printed::Shape::section;
      Printer inner(out.children);
      describe(inner, value);
    } else if constexpr (Variant<T>) {
      out.shape = Printed::Shape::section;
      std::visit([&](auto& held) { add_alternative(out, held); }, value);
    } else if constexpr (MapField<T>) {
      out.shape = Printed::Shape::section;
      for (auto& [name, element] : value)
        out.children.push_back(describe_element<typename T::mapped_type>(name, element, info));
    } else if constexpr (SectionList<T>) {
      out.shape = Printed::Shape::list;
      for (auto& element : value) out.children.push_back(describe_element<typename T::value_type>("", element, info));
    } else {
      out.text = value_text(value, info);
    }
    return out;
  }

 private:
  template <class T>
  static Printed describe_element(const std::string& key, T& element, const FieldInfo& info) {
    Printed out = describe_value(key, element, info);
    T fresh{};
    out.standard = describe_value("", fresh, info).children;
    return out;
  }
  template <class A>
  static void add_alternative(Printed& out, A& held) {
    A fresh{};
    out.alternative = A::kind_name;
    for (auto* part : {&out.children, &out.standard}) {
      Printed kind;
      kind.key = "kind";
      kind.text = A::kind_name;
      part->push_back(std::move(kind));
      Printer inner(*part);
      describe(inner, part == &out.children ? held : fresh);
    }
  }

  std::vector<Printed>& out_;
};

template <class T>
Printed printed(T value) {
  return Printer::describe_value("", value, FieldInfo{});
}

}  // namespace detail

template <class T>
std::string print(const T& value) {
  return layout(detail::printed(value));
}

template <class T>
std::map<std::string, std::string> flat(const T& value) {
  return flattened(detail::printed(value));
}

// `source` is what `value` was loaded from.
template <class T>
std::string print_with_origins(const T& value, const Source& source) {
  return layout_with_origins(detail::printed(value), detail::printed(T{}), source);
}

}  // namespace quell::config
