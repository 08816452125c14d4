// yaml-cpp's syntax errors in readable words.
#pragma once

#include <string>

namespace quell::config {

struct SyntaxError {
  std::string message, note;
};

// `reported` is yaml-cpp's message, `here` the character at the place.
SyntaxError explain_syntax(const std::string& reported, char here);

// Offset of the first quote at or after `from` that is never closed, or npos: yaml-cpp reports such a quote at the end
// of the file.
size_t find_open_quote(const std::string& content, size_t from);

// Offset behind the quoted scalar that begins at `begin`, or npos where it is not closed.
size_t end_of_quoted(const std::string& content, size_t begin);

}  // namespace quell::config
