// What a described field may hold, without its C++ type: for messages, the reference page and hints.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/describe.h"
#include "config/scalars.h"

namespace quell::config {

struct ChoiceText {
  const char* name;
  const char* help;
};

struct Type {
  enum class Shape { one, list, array, section, sections, named, variant };
  enum class Scalar { boolean, integer, number, text, choice };
  Shape shape = Shape::one;
  Scalar scalar = Scalar::text;  // of one, list and array
  bool is_optional = false;
  size_t length = 0;                    // of an array
  std::span<const ChoiceText> choices;  // of a choice; the kinds of a variant
};

// "an integer", "a list of 2 numbers", "one of the choices or auto": what stands behind "expected".
std::string expected(const Type& type, const FieldInfo& info);
// "an integer, at least 1, or auto"; "none, layernorm, rmsnorm, l2": what stands behind "allowed:".
std::string allowed(const Type& type, const FieldInfo& info);
// "at least 0 and below 1", or "" where everything is allowed.
std::string range(const FieldInfo& info);

namespace detail {

template <class E>
constexpr auto make_choice_texts() {
  static_assert(choices<E>.size() > 0, "an enum in describe() needs choices<E>");
  std::array<ChoiceText, choices<E>.size()> out{};
  for (size_t i = 0; i < out.size(); ++i) out[i] = {choices<E>[i].name, choices<E>[i].help};
  return out;
}
template <class E>
inline constexpr auto choice_texts = make_choice_texts<E>();

template <class T>
struct KindTexts;
template <class... A>
struct KindTexts<std::variant<A...>> {
  static constexpr std::array<ChoiceText, sizeof...(A)> value{ChoiceText{A::kind_name, ""}...};
};

}  // namespace detail

template <class T>
concept SectionList = VectorField<T> && Described<typename T::value_type>;

template <class T>
Type type_of() {
  using Shape = Type::Shape;
  if constexpr (std::is_same_v<T, bool>) {
    return {Shape::one, Type::Scalar::boolean, false, 0, {}};
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return {Shape::one, Type::Scalar::integer, false, 0, {}};
  } else if constexpr (std::is_same_v<T, double>) {
    return {Shape::one, Type::Scalar::number, false, 0, {}};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return {Shape::one, Type::Scalar::text, false, 0, {}};
  } else if constexpr (std::is_enum_v<T>) {
    return {Shape::one, Type::Scalar::choice, false, 0, quell::config::detail::choice_texts<T>};
  } else if constexpr (OptionalField<T>) {
    Type type = type_of<typename T::value_type>();
    type.is_optional = true;
    return type;
  } else if constexpr (Variant<T>) {
    return {Shape::variant, Type::Scalar::text, false, 0, quell::config::detail::KindTexts<T>::value};
  } else if constexpr (MapField<T>) {
    return {Shape::named, Type::Scalar::text, false, 0, {}};
  } else if constexpr (VectorField<T> || ArrayField<T>) {
    Type type = type_of<typename T::value_type>();
    type.shape = type.shape == Shape::section ? Shape::sections : ArrayField<T> ? Shape::array : Shape::list;
    if constexpr (ArrayField<T>) type.length = std::tuple_size_v<T>;
    return type;
  } else {
    static_assert(Described<T>, "config/describe.h lists the types that a field may have; a struct needs describe()");
    return {Shape::section, Type::Scalar::text, false, 0, {}};
  }
}

// A scalar or a list of scalars as print() writes it.
template <class T>
std::string value_text(const T& value, const FieldInfo& info) {
  if constexpr (OptionalField<T>) {
    if (!value) return info.absent_word;
    if constexpr (std::is_same_v<T, Optional<std::string>>) {
      return write_present(*value, info);
    } else {
      return value_text(*value, info);
    }
  } else if constexpr (VectorField<T> || ArrayField<T>) {
    std::string out;
    for (const auto& element : value)
      out += (out.empty() ? "[" : ", ") + value_text<typename T::value_type>(element, info);
    return out.empty() ? "[]" : out + "]";
  } else if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else {
    return write(value, info);
  }
}

}  // namespace quell::config
