#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace quell {
namespace {

// value scaled into its prefix, with one decimal: 124439808 -> "124.4 M". Rounds before choosing the prefix, so that
// 999,999 is "1.0 M" and not "1000.0 k".
std::string scaled(double value, double base, const std::vector<const char*>& prefixes, const char* unit) {
  size_t prefix = 0;
  while (prefix + 1 < prefixes.size() && std::abs(value) >= (prefix == 0 ? base : base - 0.05)) {
    value /= base;
    ++prefix;
  }
  char text[64];
  const bool whole = prefix == 0 && value == std::floor(value);
  std::snprintf(text, sizeof text, "%.*f", whole ? 0 : 1, value);
  const std::string suffix = cat(prefixes[prefix], unit);
  return suffix.empty() ? text : cat(text, " ", suffix);
}

int length_of_lead(unsigned char byte) {
  if (byte < 0x80) return 1;
  if (byte >= 0xC2 && byte <= 0xDF) return 2;
  if (byte >= 0xE0 && byte <= 0xEF) return 3;
  if (byte >= 0xF0 && byte <= 0xF4) return 4;
  return 0;
}

}  // namespace

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";  // whatever its sign bit says
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string significant(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%#.*g", digits, value);
  std::string out = text;
  if (out.ends_with('.')) out.pop_back();
  return out;
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += between;
    out += parts[i];
  }
  return out;
}

std::string human_bytes(double bytes) { return scaled(bytes, 1024, {"", "Ki", "Mi", "Gi", "Ti", "Pi"}, "B"); }
std::string human_count(double count) { return scaled(count, 1000, {"", "k", "M", "G", "T", "P"}, ""); }

std::string human_seconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 0.9995e-3) return cat(std::lround(seconds * 1e6), " us");
  if (seconds < 0.9995) return cat(std::lround(seconds * 1e3), " ms");
  if (seconds < 9.95) return cat(significant(seconds, 2), " s");
  if (seconds >= 1e15) return cat(shortest(seconds), " s");
  const int64_t whole = std::llround(seconds);
  if (whole < 60) return cat(whole, " s");
  const auto two = [](int64_t large, const char* large_unit, int64_t small, const char* small_unit) {
    return small == 0 ? cat(large, large_unit) : cat(large, large_unit, " ", small, small_unit);
  };
  if (whole < 3600) return two(whole / 60, " min", whole % 60, " s");
  const int64_t minutes = (whole + 30) / 60;
  if (minutes < 24 * 60) return two(minutes / 60, " h", minutes % 60, " min");
  const int64_t hours = (whole + 1800) / 3600;
  return two(hours / 24, " d", hours % 24, " h");
}

int edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int> before_last(width), last(width), row(width);
  for (size_t j = 0; j < width; ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::string closest(std::string_view word, const std::vector<std::string>& choices) {
  int nearest = static_cast<int>(word.size() + 1) / 3 + 1;
  std::string found;
  for (const auto& choice : choices) {
    const int distance = edit_distance(word, choice);
    if (distance < nearest) {
      nearest = distance;
      found = choice;
    }
  }
  return found;
}

bool is_utf8(std::string_view bytes) { return first_invalid_utf8(bytes) == std::string_view::npos; }

// The ranges of table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF.
size_t first_invalid_utf8(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  for (size_t i = 0; i < bytes.size();) {
    const unsigned char lead = at(i);
    const size_t length = static_cast<size_t>(length_of_lead(lead));
    if (length == 0 || i + length > bytes.size()) return i;
    for (size_t k = 1; k < length; ++k) {
      if ((at(i + k) & 0xC0) != 0x80) return i;
    }
    if (length >= 3) {
      const unsigned char second = at(i + 1);
      if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return i;
      if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

}  // namespace quell
