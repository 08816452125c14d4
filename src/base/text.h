// Small helpers for making messages: concatenation, lists, and numbers as people write them.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace quell {

// "heads: " + 12 + ... without a format string. Floating-point numbers are written by shortest().
template <class... Parts>
std::string cat(const Parts&... parts);

// The shortest decimal text that reads back as the same double: 1e-06 as "1e-06", 0.1 as "0.1", 3 as "3".
std::string shortest(double value);
// `digits` significant digits, trailing zeros kept: for tables and progress lines.
std::string significant(double value, int digits);

std::string join(const std::vector<std::string>& parts, std::string_view between);
std::string human_bytes(double bytes);      // "1.5 GiB"
std::string human_count(double count);      // "124.4 M"
std::string human_seconds(double seconds);  // "1 h 12 min", "38 s", "12 ms"

// Levenshtein distance with neighbouring swaps counted once; for "did you mean".
int edit_distance(std::string_view a, std::string_view b);
// The closest of `choices` within about a third of the word's length, or "" when none is near.
std::string closest(std::string_view word, const std::vector<std::string>& choices);

bool is_utf8(std::string_view bytes);
// Byte offset of the first invalid byte, or npos.
size_t first_invalid_utf8(std::string_view bytes);

namespace detail {
inline void put(std::ostringstream& out, double value) { out << shortest(value); }
inline void put(std::ostringstream& out, float value) { out << shortest(value); }
template <class T>
void put(std::ostringstream& out, const T& value) {
  out << value;
}
}  // namespace detail

template <class... Parts>
std::string cat(const Parts&... parts) {
  std::ostringstream out;
  (detail::put(out, parts), ...);
  return out.str();
}

}  // namespace quell
