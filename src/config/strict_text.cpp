#include "config/strict_text.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace quell::config {
namespace {

Place place_at(const std::string& content, size_t offset, int text) {
  const auto begin = content.begin();
  const auto here = begin + static_cast<std::ptrdiff_t>(offset);
  const size_t line_start = content.rfind('\n', offset == 0 ? 0 : offset - 1);
  const size_t first = offset == 0 || line_start == std::string::npos ? 0 : line_start + 1;
  return {text, static_cast<int>(std::count(begin, here, '\n')) + 1, static_cast<int>(offset - first) + 1};
}

// The first control character other than line ends and tabs: C0, DEL and C1.
size_t find_control(const std::string& content) {
  for (size_t i = 0; i < content.size(); ++i) {
    const auto byte = static_cast<unsigned char>(content[i]);
    if (byte == '\t' || byte == '\n' || (byte == '\r' && i + 1 < content.size() && content[i + 1] == '\n')) continue;
    if (byte < 0x20 || byte == 0x7F) return i;
    if (byte == 0xC2 && i + 1 < content.size() && static_cast<unsigned char>(content[i + 1]) < 0xA0) return i;
  }
  return std::string::npos;
}

std::string hexadecimal(unsigned char byte) {
  constexpr char digits[] = "0123456789abcdef";
  return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

// Offsets of tabs that stand before the first other character of their line.
std::vector<size_t> find_tabs(const std::string& content) {
  std::vector<size_t> tabs;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const size_t first = std::min(content.find_first_not_of(" \t\r", begin), content.size());
    const size_t tab = std::string_view(content).substr(begin, first - begin).find('\t');
    if (first < end && tab != std::string_view::npos) tabs.push_back(begin + tab);
    begin = end + 1;
  }
  return tabs;
}

// The first line that is neither blank nor a comment begins with %.
size_t find_directive(const std::string& content) {
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const size_t first = content.find_first_not_of(" \r", begin);
    if (content[begin] == '%') return begin;
    if (first < end && content[first] != '#') return std::string::npos;
    begin = end + 1;
  }
  return std::string::npos;
}

}  // namespace

bool is_strict_text(const std::string& content, int text, Mistakes& mistakes) {
  const auto refuse = [&](size_t offset, std::string message, std::string note) {
    mistakes.add({place_at(content, offset, text), std::move(message), {std::move(note)}, {}});
    return false;
  };
  if (const size_t at = first_invalid_utf8(content); at != std::string::npos) {
    return refuse(at, cat("the byte ", hexadecimal(static_cast<unsigned char>(content[at])), " is not valid UTF-8"),
                  text == 0 ? "save the file as UTF-8" : "write the override in UTF-8");
  }
  if (const size_t at = find_control(content); at != std::string::npos) {
    return refuse(at, cat("a control character (", hexadecimal(static_cast<unsigned char>(content[at])), ")"),
                  "remove it; inside double quotes it can be written as an escape such as \"\\e\"");
  }
  if (const std::vector<size_t> tabs = find_tabs(content); !tabs.empty()) {
    const size_t more = tabs.size() - 1;
    return refuse(tabs[0], "a tab in the indentation",
                  more == 0 ? "indent with spaces"
                            : cat("indent with spaces, also in ", more, more == 1 ? " more line" : " more lines"));
  }
  if (const size_t at = text == 0 ? find_directive(content) : std::string::npos; at != std::string::npos) {
    return refuse(at, "YAML directives (%) are not supported", "remove the line");
  }
  return true;
}

}  // namespace quell::config
