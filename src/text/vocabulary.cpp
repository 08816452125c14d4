#include "text/vocabulary.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

// The character that begins at `at`, which moves behind it. The text is known to be UTF-8.
char32_t next_character(std::string_view text, size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  char32_t character = lead & (0x3Fu >> more);
  for (int i = 0; i < more; ++i) character = character << 6 | (static_cast<unsigned char>(text[at++]) & 0x3Fu);
  return character;
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  out += static_cast<char>((0xF0u << (3 - more) & 0xFFu) | c >> (6 * more));
  for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80u | (c >> (6 * i) & 0x3Fu));
}

std::string described(char32_t c) {
  char code[16];
  std::snprintf(code, sizeof code, "U+%04X", static_cast<unsigned>(c));
  if (c < 0x20 || c == 0x7F) return code;
  std::string quoted = "\"";
  append_utf8(quoted, c);
  return cat(quoted, "\" (", code, ")");
}

}  // namespace

void require_utf8(std::string_view text, const std::string& name) {
  const size_t bad = first_invalid_utf8(text);
  if (bad == std::string_view::npos) return;
  char byte[8];
  std::snprintf(byte, sizeof byte, "0x%02X", static_cast<unsigned char>(text[bad]));
  throw DataError(cat(name, ": byte ", bad, " (", byte, ") is not UTF-8, which text must be; convert it, for example with ",
                      "iconv -f latin1 -t utf-8"));
}

void CharacterSet::add(std::string_view text, const std::string& name) {
  require_utf8(text, name);
  seen_.resize(0x110000);
  for (size_t at = 0; at < text.size();) seen_[next_character(text, at)] = true;
}

std::vector<char32_t> CharacterSet::sorted() const {
  std::vector<char32_t> characters;
  for (size_t c = 0; c < seen_.size(); ++c) {
    if (seen_[c]) characters.push_back(static_cast<char32_t>(c));
  }
  return characters;
}

Vocabulary Vocabulary::bytes() { return {}; }

Vocabulary Vocabulary::characters(const CharacterSet& set) {
  Vocabulary vocabulary;
  vocabulary.kind_ = TokenizerKind::character;
  vocabulary.characters_ = set.sorted();
  return vocabulary;
}

Vocabulary Vocabulary::from_json(const Json& json, const std::string& name) {
  if (!json.is_object() || !json.contains("kind")) throw DataError(name + ": a vocabulary is an object with the key \"kind\"");
  if (json["kind"] == "byte") return bytes();
  if (json["kind"] != "char") {
    throw DataError(
        cat(name, ": vocabulary kind ", json["kind"].dump(), " is not known; this program knows \"byte\" and \"char\""));
  }
  if (!json.contains("characters") || !json["characters"].is_string() || json["characters"] == "") {
    throw DataError(name + ": a vocabulary of kind \"char\" needs \"characters\", a text that is not empty");
  }
  const auto& text = json["characters"].get_ref<const std::string&>();
  Vocabulary vocabulary;
  vocabulary.kind_ = TokenizerKind::character;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_character(text, at);
    if (!vocabulary.characters_.empty() && c <= vocabulary.characters_.back()) {
      throw DataError(cat(name, ": \"characters\" must ascend by code point, and ", described(c), " does not"));
    }
    vocabulary.characters_.push_back(c);
  }
  return vocabulary;
}

Json Vocabulary::to_json() const {
  if (kind_ == TokenizerKind::byte) return {{"kind", "byte"}};
  std::string text;
  for (char32_t c : characters_) append_utf8(text, c);
  return {{"kind", "char"}, {"characters", text}};
}

int64_t Vocabulary::size() const { return kind_ == TokenizerKind::byte ? 256 : static_cast<int64_t>(characters_.size()); }

std::vector<uint32_t> Vocabulary::encode(std::string_view text, const std::string& name) const {
  std::vector<uint32_t> ids;
  ids.reserve(text.size());
  if (kind_ == TokenizerKind::byte) {
    for (char byte : text) ids.push_back(static_cast<unsigned char>(byte));
    return ids;
  }
  require_utf8(text, name);
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const char32_t c = next_character(text, at);
    const auto found = std::lower_bound(characters_.begin(), characters_.end(), c);
    if (found == characters_.end() || *found != c) {
      throw DataError(cat(name, ": byte ", begin, ": the character ", described(c), " is not among the ", size(),
                          " of the vocabulary, which knows the characters of the text that it was made from"));
    }
    ids.push_back(static_cast<uint32_t>(found - characters_.begin()));
  }
  return ids;
}

std::string Vocabulary::decode(const std::vector<int64_t>& tokens) const {
  std::string text;
  for (int64_t id : tokens) {
    if (id < 0 || id >= size()) {
      append_utf8(text, 0xFFFD);
    } else if (kind_ == TokenizerKind::byte) {
      text += static_cast<char>(id);
    } else {
      append_utf8(text, characters_[static_cast<size_t>(id)]);
    }
  }
  return text;
}

}  // namespace quell
