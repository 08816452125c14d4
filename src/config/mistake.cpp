// Layout of error texts: what fits stays within 80 columns, and no control character of an input reaches the terminal.
#include "config/mistake.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace quell::config {
namespace {

constexpr size_t kept_mistakes = 1000;
constexpr size_t shown_mistakes = 20;
constexpr size_t text_width = 80;
constexpr size_t source_width = 66;  // characters of a source line; longer ones are cut around the caret
constexpr size_t longest_message = 400;

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The line in characters, each fit to be printed: "?" for what is not UTF-8 and for control characters.
std::vector<std::string> characters(std::string_view line) {
  std::vector<std::string> out;
  for (size_t i = 0; i < line.size();) {
    size_t end = i + 1;
    while (end < line.size() && continues(line[end])) ++end;
    const std::string_view one = line.substr(i, end - i);
    const auto byte = static_cast<unsigned char>(one[0]);
    const bool control =
        byte < 0x20 || byte == 0x7F || (byte == 0xC2 && one.size() > 1 && static_cast<unsigned char>(one[1]) < 0xA0);
    out.push_back(one == "\t" ? " " : control || !is_utf8(one) ? "?" : std::string(one));
    i = end;
  }
  return out;
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (const std::string& one : characters(text)) {
    if (out.size() + one.size() > limit) return out + "...";
    out += one;
  }
  return out;
}

std::string_view line_of(const std::string& content, int line) {
  size_t begin = 0;
  for (int i = 1; i < line && begin != std::string::npos; ++i) {
    begin = content.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  if (begin == std::string::npos) return {};
  std::string_view rest = std::string_view(content).substr(begin);
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
}

size_t characters_before(std::string_view line, size_t bytes) {
  return characters(line.substr(0, std::min(bytes, line.size()))).size();
}

std::string spaces(size_t count) { return std::string(count, ' '); }

// The source line and a caret line below it.
std::string excerpt(const std::vector<Text>& texts, const Place& place, std::string_view remark) {
  const Text& text = texts[static_cast<size_t>(place.text)];
  const std::string_view line = line_of(text.content, place.line);
  const auto column = static_cast<size_t>(place.column - 1);
  size_t at = characters_before(line, column);
  size_t width = std::max<size_t>(characters_before(line, column + static_cast<size_t>(place.width)) - at, 1);
  std::vector<std::string> shown = characters(line);

  std::string before, after;
  if (shown.size() > source_width) {
    const size_t begin = at > source_width / 2 ? at - source_width / 2 : 0;
    const size_t end = std::min(shown.size(), begin + source_width);
    if (begin > 0) before = "...";
    if (end < shown.size()) after = "...";
    shown = {shown.begin() + static_cast<std::ptrdiff_t>(begin), shown.begin() + static_cast<std::ptrdiff_t>(end)};
    at = at - begin + before.size();
    width = std::min(width, std::max<size_t>(before.size() + shown.size(), at + 1) - at);
  }
  const std::string number = cat(place.line);
  const std::string gutter =
      text.is_file ? spaces(number.size() < 5 ? 5 - number.size() : 0) + number + " | " : spaces(4);
  const std::string blank = text.is_file ? spaces(gutter.size() - 2) + "| " : gutter;
  std::string out = gutter + before + join(shown, "") + after + "\n" + blank + spaces(at) + std::string(width, '^');
  if (!remark.empty()) out += cat(" ", remark);
  return out + "\n";
}

// Broken at spaces; the continuation is indented.
std::string wrapped(const std::string& text) {
  std::string out = "  ";
  size_t width = 2;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (width > 4 && width + 1 + word.size() > text_width) {
      out += "\n    ";
      width = 4;
    } else if (begin > 0) {
      out += ' ';
      ++width;
    }
    out += word;
    width += word.size();
    begin = end + 1;
  }
  return out + "\n";
}

std::string render(const std::vector<Text>& texts, const Mistake& mistake) {
  std::string out = label(texts, mistake.place) + ": " + printable(mistake.message, longest_message) + "\n";
  if (mistake.place.line > 0) out += excerpt(texts, mistake.place, "");
  if (mistake.first) out += excerpt(texts, *mistake.first, "first given here");
  for (const std::string& note : mistake.notes) out += wrapped(printable(note, 2 * longest_message));
  return out;
}

}  // namespace

bool operator<(const Place& a, const Place& b) {
  return std::tie(a.text, a.line, a.column) < std::tie(b.text, b.line, b.column);
}

std::string label(const std::vector<Text>& texts, const Place& place) {
  const Text& text = texts[static_cast<size_t>(place.text)];
  if (!text.is_file || place.line == 0) return printable(text.name, text_width);
  const size_t before = characters_before(line_of(text.content, place.line), static_cast<size_t>(place.column - 1));
  return cat(text.name, ":", place.line, ":", before + 1);
}

void Mistakes::add(Mistake mistake) {
  if (kept_.size() < kept_mistakes) {
    kept_.push_back(std::move(mistake));
  } else {
    ++dropped_;
  }
}

std::string render(const std::vector<Text>& texts, const Mistakes& mistakes) {
  std::vector<Mistake> sorted = mistakes.kept();
  std::stable_sort(sorted.begin(), sorted.end(), [](const Mistake& a, const Mistake& b) { return a.place < b.place; });
  std::string out;
  for (size_t i = 0; i < sorted.size() && i < shown_mistakes; ++i) out += render(texts, sorted[i]);
  if (mistakes.size() > shown_mistakes) out += cat("and ", mistakes.size() - shown_mistakes, " more mistakes\n");
  out.pop_back();
  return out;
}

std::string quoted(std::string_view text) { return "\"" + printable(text, 60) + "\""; }

}  // namespace quell::config
