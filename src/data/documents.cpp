#include "data/documents.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "text/vocabulary.h"

namespace quell {
namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

// The byte at which character number `wanted` begins.
size_t offset_of_character(std::string_view text, int64_t wanted) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (begins_character(text[i]) && wanted-- == 0) return i;
  }
  return text.size();
}

// The text under `key` of a line, or nothing where the line has no such key.
const std::string* member(const Json& line, const char* key, const std::string& place) {
  const auto found = line.find(key);
  if (found == line.end()) return nullptr;
  if (!found->is_string()) throw DataError(cat(place, ": \"", key, "\" must be a text, not ", found->type_name()));
  return &found->get_ref<const std::string&>();
}

Document document_of(const Json& line, const std::string& place) {
  const char* wanted = ": a line is {\"text\": ...} or {\"prompt\": ..., \"answer\": ...}";
  if (!line.is_object()) throw DataError(place + wanted);
  const std::string* text = member(line, "text", place);
  const std::string* prompt = member(line, "prompt", place);
  const std::string* answer = member(line, "answer", place);
  const bool plain = text && !prompt && !answer, asked = !text && prompt && answer;
  if (!plain && !asked) throw DataError(place + wanted);
  if ((plain ? text : answer)->empty()) {
    throw DataError(cat(place, ": ", plain ? "\"text\"" : "\"answer\"", " is empty: leave such a line out"));
  }
  return plain ? Document{{}, *text, false} : Document{*prompt, *answer, true};
}

}  // namespace

TextFile::TextFile(const std::string& path) : name_(path == "-" ? "standard input" : path), lines_(path.ends_with(".jsonl")) {
  const std::string real = path == "-" ? "/dev/stdin" : path;
  if (!files::exists(real)) throw DataError(name_ + ": does not exist");
  if (files::is_folder(real)) throw DataError(name_ + ": is a folder; name the text files in it");
  if (path != "-" && std::filesystem::is_regular_file(real)) {
    mapping_ = files::Mapping(real);
    text_ = {reinterpret_cast<const char*>(mapping_.bytes().data()), mapping_.bytes().size()};
  } else {  // a pipe
    read_ = files::read(real);
    text_ = read_;
  }
  if (text_.empty()) throw DataError(name_ + ": is empty");
  require_utf8(text_, name_);
}

bool TextFile::drop_byte_order_mark() {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  if (lines_ || !text_.starts_with(mark)) return false;
  text_.remove_prefix(mark.size());
  if (text_.empty()) throw DataError(name_ + ": is empty but for a byte order mark");
  return true;
}

TextFile::LineEnds TextFile::line_ends() const {
  LineEnds found;
  if (lines_) return found;
  for (size_t at = text_.find('\n'); at != std::string_view::npos; at = text_.find('\n', at + 1)) {
    ++found.all;
    found.crlf += at > 0 && text_[at - 1] == '\r';
  }
  return found;
}

void TextFile::visit(double valid, const std::function<void(const Document&, bool)>& visitor) const {
  lines_ ? visit_lines(valid, visitor) : visit_text(valid, visitor);
}

int64_t TextFile::training_part(int64_t count, const char* what, double valid) const {
  // (1 - 0.9) * 10 is 0.99999... in floating point, and one of ten is meant.
  const double exact = (1 - valid) * static_cast<double>(count);
  const auto part = static_cast<int64_t>(std::floor(exact + 1e-12 * static_cast<double>(count)));
  if (valid > 0 && (part == 0 || part == count)) {
    throw DataError(
        cat(name_, ": ", count, " ", what, " are too few to hold back ", valid, " of them: give more text, or --valid 0"));
  }
  return part;
}

void TextFile::visit_text(double valid, const std::function<void(const Document&, bool)>& visitor) const {
  const int64_t characters = std::count_if(text_.begin(), text_.end(), begins_character);
  const size_t border = offset_of_character(text_, training_part(characters, "characters", valid));
  visitor({{}, text_.substr(0, border), false}, false);
  if (border < text_.size()) visitor({{}, text_.substr(border), false}, true);
}

void TextFile::visit_lines(double valid, const std::function<void(const Document&, bool)>& visitor) const {
  const int64_t lines = std::count(text_.begin(), text_.end(), '\n') + (text_.ends_with('\n') ? 0 : 1);
  const int64_t training = training_part(lines, "lines", valid);
  std::string_view rest = text_;
  for (int64_t line = 0; line < lines; ++line) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const Json json = parse_json(rest.substr(0, end), name_, line + 1);
    visitor(document_of(json, cat(name_, ":", line + 1)), line >= training);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace quell
