#include "config/types.h"

#include "base/text.h"

namespace quell::config {
namespace {

struct Words {
  const char* one;
  const char* many;
};

Words words_of(const Type& type, const FieldInfo& info) {
  switch (type.scalar) {
    case Type::Scalar::boolean: return {"true or false", "values true or false"};
    case Type::Scalar::integer:
      return info.is_duration ? Words{"a duration", "durations"} : Words{"an integer", "integers"};
    case Type::Scalar::number:
      return info.is_duration ? Words{"a duration", "durations"} : Words{"a number", "numbers"};
    case Type::Scalar::text: return {"a text", "texts"};
    case Type::Scalar::choice: return {"one of the choices", "choices"};
  }
  return {"a value", "values"};
}

std::string collection(const Type& type, const std::string& elements) {
  return type.shape == Type::Shape::array ? cat("a list of ", type.length, " ", elements) : "a list of " + elements;
}

std::string form(const FieldInfo& info) {
  if (info.is_duration) return " such as 90 (seconds), 45m, 23h45m or 1d";
  return info.has_suffixes ? " such as 500, 10k, 3M, 10G or 1T" : "";
}

std::string choice_names(const Type& type) {
  std::vector<std::string> names;
  for (const ChoiceText& choice : type.choices) names.emplace_back(choice.name);
  return join(names, ", ");
}

}  // namespace

std::string range(const FieldInfo& info) {
  const bool has_low = info.low > -std::numeric_limits<double>::infinity();
  const bool has_high = info.high < std::numeric_limits<double>::infinity();
  const std::string low = cat(info.low_open ? "above " : "at least ", info.low);
  const std::string high = cat(info.high_open ? "below " : "at most ", info.high);
  return has_low && has_high ? cat(low, " and ", high) : has_low ? low : has_high ? high : "";
}

std::string expected(const Type& type, const FieldInfo& info) {
  switch (type.shape) {
    case Type::Shape::one: return cat(words_of(type, info).one, type.is_optional ? cat(" or ", info.absent_word) : "");
    case Type::Shape::list:
    case Type::Shape::array: return collection(type, words_of(type, info).many);
    case Type::Shape::sections: return "a list of sections";
    case Type::Shape::named: return "named sections";
    default: return "a section";
  }
}

std::string allowed(const Type& type, const FieldInfo& info) {
  switch (type.shape) {
    case Type::Shape::sections: return "a list, like [{key: value}, ...]";
    case Type::Shape::section:
    case Type::Shape::variant: return "`key: value` lines below it, or {key: value, ...}";
    case Type::Shape::named: return "named sections, like {name: {key: value}}";
    default: break;
  }
  const bool is_choice = type.scalar == Type::Scalar::choice;
  const Words words = words_of(type, info);
  std::string out = type.shape == Type::Shape::one ? words.one : collection(type, words.many);
  if (is_choice) out = type.shape == Type::Shape::one ? choice_names(type) : out + " (" + choice_names(type) + ")";
  out += form(info);
  if (const std::string limits = range(info); !limits.empty()) {
    out += (type.shape == Type::Shape::one ? ", " : ", each ") + limits;
  }
  if (type.is_optional) out += cat(is_choice ? ", " : ", or ", info.absent_word);
  return out;
}

}  // namespace quell::config
