// The vocabulary in which a struct lists its fields, once:
//
//   struct ClipConfig { ClipKind kind = ClipKind::norm; double limit = 1.0; };
//   template <class V> void describe(V& v, ClipConfig& c) {
//     v.field("kind", c.kind, help("How gradients are clipped."));
//     v.field("limit", c.limit, help("Largest global norm, or largest absolute value.").above(0));
//   }
//
// Loading, checking, overriding, printing, the reference page and the tests are visitors of that list (config/load.h,
// config/print.h, config/reference.h). A visitor V has
//
//   template <class T> void field(const char* key, T& value, const FieldInfo& info);
//   void derive(const std::function<void()>& rule);   // defaults that follow from the fields above it; only loading runs it
//
// A field's type is bool, int64_t, double, std::string, an enum with choices<E>, an Optional<T>, std::vector<T> or
// std::array<T, N> of these, another described struct, std::vector, std::map<std::string, .> or NamedMap of described structs, or a
// std::variant of described structs, each with `static constexpr const char* kind_name`, chosen by the key `kind`.
//
// Beside a struct may stand `void check(Problems&, const Struct&)`: what cannot be said of one field alone. Loading runs it
// when every field of that struct could be read, innermost structs first.
//
// This header includes neither yaml-cpp nor torch and may be included by any room.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace quell {

// ---- enums -------------------------------------------------------------------------------------------------------------

template <class E>
struct Choice {
  E value;
  const char* name;
  const char* help = "";
};
template <class E, class... Rest>
Choice(E, const char*, Rest...) -> Choice<E>;

// Specialise for each enum: template <> inline constexpr auto choices<NormKind> = std::array{Choice{NormKind::none, "none"}, ...};
template <class E>
inline constexpr std::array<Choice<E>, 0> choices{};

template <class E>
constexpr const char* name_of(E value) {
  for (const auto& choice : choices<E>) {
    if (choice.value == value) return choice.name;
  }
  return "?";
}

template <class E>
std::optional<E> choice_named(std::string_view name) {
  for (const auto& choice : choices<E>) {
    if (name == choice.name) return choice.value;
  }
  return std::nullopt;
}

// ---- values that may be absent --------------------------------------------------------------------------------------------

// A value or one word that stands for its absence, as YAML spells it: `threads: auto`, `softcap: none`.
// The word belongs to the field: help("...").absent("auto"). Default: "none".
template <class T>
using Optional = std::optional<T>;

// A map whose new entries start as a copy of `fallback` (set by a derive() rule) rather than of T{}: variants that say only what
// differs from their base.
template <class T>
struct NamedMap : std::map<std::string, T> {
  using mapped_type = T;
  T fallback;
};

// ---- what a field says of itself ---------------------------------------------------------------------------------------

struct FieldInfo {
  const char* text = "";
  const char* unit_text = "";
  const char* absent_word = "none";
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;   // above(x) rather than at_least(x)
  bool high_open = false;  // below(x) rather than at_most(x)
  bool has_suffixes = false;  // 10k, 3M, 10G, 1T: powers of 1000
  bool is_duration = false;   // 90, 45m, 23h45m, 1d: stored in seconds

  constexpr FieldInfo& unit(const char* u) { unit_text = u; return *this; }
  constexpr FieldInfo& absent(const char* word) { absent_word = word; return *this; }
  constexpr FieldInfo& at_least(double x) { low = x; low_open = false; return *this; }
  constexpr FieldInfo& above(double x) { low = x; low_open = true; return *this; }
  constexpr FieldInfo& at_most(double x) { high = x; high_open = false; return *this; }
  constexpr FieldInfo& below(double x) { high = x; high_open = true; return *this; }
  constexpr FieldInfo& suffixes() { has_suffixes = true; return *this; }
  constexpr FieldInfo& duration() { is_duration = true; return *this; }
};

constexpr FieldInfo help(const char* text) {
  FieldInfo info;
  info.text = text;
  return info;
}

// ---- what types a visitor meets ------------------------------------------------------------------------------------------

namespace detail {
struct NoVisitor {
  template <class T> void field(const char*, T&, const FieldInfo&) {}
  void derive(const std::function<void()>&) {}
};
template <class T> struct IsVariant : std::false_type {};
template <class... A> struct IsVariant<std::variant<A...>> : std::true_type {};
template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type {};
template <class T> struct IsVector : std::false_type {};
template <class T> struct IsVector<std::vector<T>> : std::true_type {};
template <class T> struct IsArray : std::false_type {};
template <class T, size_t N> struct IsArray<std::array<T, N>> : std::true_type {};
template <class T> struct IsMap : std::false_type {};
template <class T> struct IsMap<std::map<std::string, T>> : std::true_type {};
template <class T> struct IsMap<NamedMap<T>> : std::true_type {};
}  // namespace detail

template <class T>
concept Described = requires(T& value, detail::NoVisitor& visitor) { describe(visitor, value); };
template <class T> concept Variant = detail::IsVariant<T>::value;
template <class T> concept OptionalField = detail::IsOptional<T>::value;
template <class T> concept VectorField = detail::IsVector<T>::value;
template <class T> concept ArrayField = detail::IsArray<T>::value;
template <class T> concept MapField = detail::IsMap<T>::value;

// ---- problems -----------------------------------------------------------------------------------------------------------

// What check() functions report. `key` is relative to the checked struct ("heads", "qk_norm.axis"); loading adds the path and
// the place. `fix` says what is allowed or what to do.
class Problems {
 public:
  struct Problem {
    std::string key, message, fix;
  };
  void add(std::string key, std::string message, std::string fix = "") {
    all_.push_back({std::move(key), std::move(message), std::move(fix)});
  }
  const std::vector<Problem>& all() const { return all_; }

 private:
  std::vector<Problem> all_;
};

template <class T>
concept Checked = requires(Problems& problems, const T& value) { check(problems, value); };

}  // namespace quell
