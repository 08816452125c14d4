// Bytes to tokens and back for the two tokenizers that need no training: `byte` (256 ids) and `char` (the characters
// that occur in the text, in code point order). A vocabulary is stored as JSON beside the tokens and in the run's
// folder: {"kind": "byte"}, or {"kind": "char", "characters": "\n !,.ABC..."}, where a character's place is its id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace quell {

enum class TokenizerKind { byte, character };

// The characters of texts that may be larger than the memory: add them piece by piece, then make the vocabulary.
class CharacterSet {
 public:
  // Whole characters. Throws DataError on invalid UTF-8, with `name` and the byte's offset in `text`.
  void add(std::string_view text, const std::string& name);
  std::vector<char32_t> sorted() const;

 private:
  std::vector<bool> seen_;
};

class Vocabulary {
 public:
  static Vocabulary bytes();
  static Vocabulary characters(const CharacterSet& set);
  // Throws DataError that starts with `name`.
  static Vocabulary from_json(const Json& json, const std::string& name);
  Json to_json() const;

  TokenizerKind kind() const { return kind_; }
  int64_t size() const;
  // Throws DataError on a character that is not in the vocabulary: the character, its code point and its byte offset in
  // `name`.
  std::vector<uint32_t> encode(std::string_view text, const std::string& name) const;
  std::string decode(const std::vector<int64_t>& tokens) const;  // ids outside: U+FFFD

 private:
  TokenizerKind kind_ = TokenizerKind::byte;
  std::vector<char32_t> characters_;  // ascending; empty for bytes
};

// Throws DataError that names the byte where `text` stops being UTF-8 and says how to convert it.
void require_utf8(std::string_view text, const std::string& name);

}  // namespace quell
