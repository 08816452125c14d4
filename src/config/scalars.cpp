#include "config/scalars.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace quell::config {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A decimal number: (-1)^is_negative * digits * 10^exponent, exactly as it was written.
struct Decimal {
  bool is_negative = false;
  std::string digits;  // without leading zeros; "" is zero
  int64_t exponent = 0;
};

constexpr int64_t largest_exponent = 100000;

// Digits with single underscores between them; appends them to `digits` and returns how many characters they take.
size_t take_digits(std::string_view text, std::string& digits) {
  size_t i = 0;
  while (i < text.size()) {
    if (is_digit(text[i])) {
      digits += text[i++];
    } else if (text[i] == '_' && i > 0 && is_digit(text[i - 1]) && i + 1 < text.size() && is_digit(text[i + 1])) {
      ++i;
    } else {
      break;
    }
  }
  return i;
}

std::optional<Complaint> read_exponent(std::string_view& text, int64_t& exponent) {
  if (text.empty() || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(1);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  std::string digits;
  const size_t taken = take_digits(text, digits);
  if (taken == 0) return Complaint{};
  text.remove_prefix(taken);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  const int64_t size = digits.size() > 6 ? largest_exponent : digits.empty() ? 0 : std::stoll(digits);
  exponent += is_negative ? -size : size;
  return std::nullopt;
}

// `text` is left with what follows the number.
std::optional<Complaint> read_decimal(std::string_view& text, Decimal& out) {
  out.is_negative = text.starts_with('-');
  if (out.is_negative || text.starts_with('+')) text.remove_prefix(1);
  const size_t whole = take_digits(text, out.digits);
  if (whole > 1 && text[0] == '0') {
    const size_t first = std::min(text.find_first_not_of("0_"), whole - 1);
    const char* sign = out.is_negative ? "-" : "";
    return Complaint{cat(sign, text, " begins with 0, which some readers of YAML take as octal"),
                     cat("write ", sign, text.substr(first))};
  }
  text.remove_prefix(whole);
  size_t fraction = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const size_t before = out.digits.size();
    text.remove_prefix(take_digits(text, out.digits));
    fraction = out.digits.size() - before;
  }
  if (out.digits.empty()) return Complaint{};
  out.exponent = -static_cast<int64_t>(fraction);
  out.digits.erase(0, std::min(out.digits.find_first_not_of('0'), out.digits.size()));
  return read_exponent(text, out.exponent);
}

// Forms that look like numbers and are none here.
std::optional<Complaint> find_odd_form(std::string_view text) {
  std::string_view bare = text;
  if (bare.starts_with('-') || bare.starts_with('+')) bare.remove_prefix(1);
  if (bare.size() > 2 && bare[0] == '0' && std::string_view("xXoObB").find(bare[1]) != std::string_view::npos) {
    const int base = bare[1] == 'x' || bare[1] == 'X' ? 16 : bare[1] == 'o' || bare[1] == 'O' ? 8 : 2;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(bare.data() + 2, bare.data() + bare.size(), value, base);
    if (error != std::errc{} || end != bare.data() + bare.size()) return Complaint{};
    return Complaint{cat(text, " is not a decimal number"), cat("write ", text[0] == '-' ? "-" : "", value)};
  }
  std::string lower(bare);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (lower == ".nan" || lower == "nan" || lower == ".inf" || lower == "inf" || lower == "infinity") {
    return Complaint{cat(text, " is not a finite number"), ""};
  }
  return std::nullopt;
}

constexpr std::array suffixes{'k', 'M', 'G', 'T'};

// A whole text as one number, with a suffix where the field allows it.
std::optional<Complaint> read_number(std::string_view text, const FieldInfo& info, Decimal& out) {
  if (auto odd = find_odd_form(text)) return odd;
  std::string_view rest = text;
  if (auto complaint = read_decimal(rest, out)) return complaint;
  const auto suffix = rest.size() == 1 ? std::find(suffixes.begin(), suffixes.end(), rest[0]) : suffixes.end();
  if (suffix != suffixes.end()) {
    const auto power = 3 * (suffix - suffixes.begin() + 1);
    if (info.is_duration) return Complaint{};
    if (!info.has_suffixes)
      return Complaint{"", cat("suffixes are not for this key: write ", text.substr(0, text.size() - 1), "e", power)};
    out.exponent += power;
    rest.remove_prefix(1);
  }
  if (!rest.empty()) return Complaint{};
  return std::nullopt;
}

std::optional<Complaint> to_integer(std::string_view text, const Decimal& number, int64_t& value) {
  const size_t last = number.digits.find_last_not_of('0');
  if (last == std::string::npos) {
    value = 0;
    return std::nullopt;
  }
  std::string digits = number.digits.substr(0, last + 1);
  const int64_t exponent = number.exponent + static_cast<int64_t>(number.digits.size() - digits.size());
  if (exponent < 0) return Complaint{};  // 1.5
  const Complaint too_large{cat(text, " does not fit into 64 bits"), ""};
  if (static_cast<int64_t>(digits.size()) + exponent > 19) return too_large;
  digits.append(static_cast<size_t>(exponent), '0');
  if (number.is_negative) digits.insert(0, "-");
  int64_t parsed = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), parsed).ec != std::errc{}) return too_large;
  value = parsed;
  return std::nullopt;
}

std::optional<Complaint> to_double(std::string_view text, const Decimal& number, double& value) {
  const std::string plain =
      cat(number.is_negative ? "-" : "", number.digits.empty() ? "0" : number.digits, "e", number.exponent);
  double parsed = 0;
  if (std::from_chars(plain.data(), plain.data() + plain.size(), parsed).ec == std::errc::result_out_of_range) {
    const bool is_small = number.exponent + static_cast<int64_t>(number.digits.size()) < 0;
    return Complaint{cat(text, is_small ? " is too small to be told from 0" : " is too large for a number of 64 bits"),
                     ""};
  }
  value = parsed;
  return std::nullopt;
}

// 23h45m: each unit at most once, from large to small, whole numbers below 10^9. Returns seconds, or nothing.
std::optional<int64_t> read_units(std::string_view text) {
  constexpr std::array<std::pair<char, int64_t>, 4> units{{{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}};
  int64_t seconds = 0;
  size_t unit = 0;
  while (!text.empty()) {
    size_t digits = 0;
    while (digits < text.size() && is_digit(text[digits])) ++digits;
    if (digits == 0 || digits > 9 || digits == text.size()) return std::nullopt;
    while (unit < units.size() && units[unit].first != text[digits]) ++unit;
    if (unit == units.size()) return std::nullopt;
    seconds += std::stoll(std::string(text.substr(0, digits))) * units[unit].second;
    ++unit;
    text.remove_prefix(digits + 1);
  }
  return seconds;
}

bool has_unit(std::string_view text) {
  return !text.empty() && std::string_view("dhms").find(text.back()) != std::string_view::npos;
}

// What another reader of YAML, or this one for another type, would not take as a text.
bool is_plain_text(const std::string& value) {
  constexpr std::string_view inside = "_./-+*=@%^~$";
  const auto is_word = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const bool is_path = value.starts_with('/') || value.starts_with("./") || value.starts_with("../");
  if (value.empty() || is_digit(value[0]) || !(is_word(value[0]) || is_path)) return false;
  for (size_t i = 1; i < value.size(); ++i) {
    const bool is_between =
        (value[i] == ' ' || value[i] == ':') && i + 1 < value.size() && is_word(value[i + 1]) && is_word(value[i - 1]);
    if (!is_between && !is_word(value[i]) && inside.find(value[i]) == std::string_view::npos) return false;
  }
  std::string lower = value;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array special{"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"};
  return std::find(special.begin(), special.end(), lower) == special.end();
}

std::string in_quotes(const std::string& value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    auto byte = static_cast<unsigned char>(c);
    const bool is_c1 =
        byte == 0xC2 && static_cast<unsigned char>(value[i + 1]) < 0xA0;  // its code point is the second byte
    if (is_c1) byte = static_cast<unsigned char>(value[++i]);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7F || is_c1) {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace

std::optional<Complaint> parse(std::string_view text, const FieldInfo&, bool& value) {
  if (text == "true" || text == "false") {
    value = text == "true";
    return std::nullopt;
  }
  constexpr std::array yes{"yes", "Yes", "YES", "on", "On", "ON", "True", "TRUE", "y", "Y", "1"};
  constexpr std::array no{"no", "No", "NO", "off", "Off", "OFF", "False", "FALSE", "n", "N", "0"};
  if (std::find(yes.begin(), yes.end(), text) != yes.end()) return Complaint{"", "write true"};
  if (std::find(no.begin(), no.end(), text) != no.end()) return Complaint{"", "write false"};
  return Complaint{};
}

std::optional<Complaint> parse(std::string_view text, const FieldInfo& info, int64_t& value) {
  if (info.is_duration && has_unit(text)) {
    const std::optional<int64_t> seconds = read_units(text);
    if (!seconds) return Complaint{};
    value = *seconds;
    return std::nullopt;
  }
  Decimal number;
  if (auto complaint = read_number(text, info, number)) return complaint;
  return to_integer(text, number, value);
}

std::optional<Complaint> parse(std::string_view text, const FieldInfo& info, double& value) {
  if (info.is_duration && has_unit(text)) {
    int64_t seconds = 0;
    if (auto complaint = parse(text, info, seconds)) return complaint;
    value = static_cast<double>(seconds);
    return std::nullopt;
  }
  Decimal number;
  if (auto complaint = read_number(text, info, number)) return complaint;
  return to_double(text, number, value);
}

std::string outside(const FieldInfo& info, long double value) {
  if (value < info.low || (info.low_open && value == info.low)) return "too small";
  if (value > info.high || (info.high_open && value == info.high)) return "too large";
  return "";
}

std::string write(bool value, const FieldInfo&) { return value ? "true" : "false"; }

std::string write(int64_t value, const FieldInfo& info) {
  if (info.is_duration && value >= 60 && value / 86400 < 1000000000) {
    std::string out;
    for (const auto& [unit, size] : {std::pair{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}}) {
      if (value / size > 0) out += cat(value / size, unit);
      value %= size;
    }
    return out;
  }
  if (info.has_suffixes) {
    int64_t power = 1000000000000;
    for (auto suffix = suffixes.rbegin(); suffix != suffixes.rend(); ++suffix, power /= 1000) {
      if (value != 0 && value % power == 0) return cat(value / power, *suffix);
    }
  }
  return cat(value);
}

std::string write(double value, const FieldInfo& info) {
  const bool is_whole = value == std::floor(value) && std::abs(value) < 1e13 && (value != 0 || !std::signbit(value));
  if (is_whole && (info.is_duration || info.has_suffixes)) return write(static_cast<int64_t>(value), info);
  return shortest(value);
}

std::string write(const std::string& value, const FieldInfo&) {
  require(is_utf8(value), "config: a text that is not UTF-8 cannot be written");
  return is_plain_text(value) ? value : in_quotes(value);
}

std::string write_present(const std::string& value, const FieldInfo& info) {
  return value == info.absent_word ? in_quotes(value) : write(value, info);
}

}  // namespace quell::config
