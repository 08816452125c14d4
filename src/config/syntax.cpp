#include "config/syntax.h"

#include <array>

#include "base/text.h"

namespace quell::config {
namespace {

struct Rule {
  const char* reported;  // a part of yaml-cpp's message
  const char* message;
  const char* note;
};

constexpr std::array rules{
    Rule{"illegal map value", "\":\" is not expected here",
         "check the indentation here and above, or put a text that contains \": \" in quotes"},
    Rule{"end of map not found", "this does not continue the map above it",
         "keys of one level begin in one column; behind a quoted text or a bracket nothing follows"},
    Rule{"end of sequence not found", "this does not continue the list above it",
         "the \"-\" of one list stand in one column; behind a quoted text or a bracket nothing follows"},
    Rule{"end of map flow not found", "this { is never closed", "add }"},
    Rule{"end of sequence flow not found", "this [ is never closed", "add ]"},
    Rule{"illegal EOF in scalar", "this quote is never closed", "add the closing quote"},
    Rule{"illegal document indicator in scalar", "--- or ... inside a quoted text", "indent the line"},
    Rule{"illegal flow end", "a closing bracket without an opening one", "remove it"},
    Rule{"illegal block entry", "a list cannot begin with \"-\" here",
         "write [a, b], or begin each element with \"- \" on a line of its own"},
    Rule{"illegal map key", "\"?\" is not expected here", "put a text that begins with \"? \" in quotes"},
    Rule{"alias", "\"*\" begins an alias, and aliases are not supported",
         "put a text that begins with * in quotes: \"*.bias\""},
    Rule{"the referenced anchor", "\"*\" begins an alias, and aliases are not supported",
         "put a text that begins with * in quotes: \"*.bias\""},
    Rule{"anchor", "\"&\" begins an anchor, and anchors are not supported", "put a text that begins with & in quotes"},
    Rule{"tag", "\"!\" begins a tag, and tags are not supported", "put a text that begins with ! in quotes"},
    Rule{"unknown escape character", "an unknown escape in a text in double quotes",
         "write \\\\ for a backslash, or use single quotes"},
    Rule{"hex number", "an escape with a bad hexadecimal number", "\\x takes two digits, \\u four, \\U eight"},
    Rule{"invalid unicode", "an escape that is no character of Unicode", "remove it"},
    Rule{"block scalar", "a bad header of a block text", "write only | or > and begin the text on the next line"},
    Rule{"illegal tab", "a tab in the indentation", "indent with spaces"},
};

}  // namespace

SyntaxError explain_syntax(const std::string& reported, char here) {
  if (reported.find("unknown token") != std::string::npos) {
    return {cat("a value cannot begin with ", std::string(1, here)), "put it in quotes"};
  }
  for (const Rule& rule : rules) {
    if (reported.find(rule.reported) != std::string::npos) return {rule.message, rule.note};
  }
  return {cat("not valid YAML (", reported, ")"), "write `key: value` lines"};
}

size_t end_of_quoted(const std::string& content, size_t begin) {
  const char quote = content[begin];
  for (size_t i = begin + 1; i < content.size(); ++i) {
    if (quote == '"' && content[i] == '\\') {
      ++i;
    } else if (content[i] == quote) {
      if (quote == '\'' && i + 1 < content.size() && content[i + 1] == '\'') {
        ++i;
      } else {
        return i + 1;
      }
    }
  }
  return std::string::npos;
}

size_t find_open_quote(const std::string& content, size_t from) {
  for (size_t i = from; i < content.size(); ++i) {
    const bool begins_token = i == 0 || std::string_view(" \n[{,:").find(content[i - 1]) != std::string_view::npos;
    if (!begins_token) continue;
    if (content[i] == '#') {
      i = content.find('\n', i);
      if (i == std::string::npos) return i;
    } else if (content[i] == '"' || content[i] == '\'') {
      const size_t end = end_of_quoted(content, i);
      if (end == std::string::npos) return i;
      i = end - 1;
    }
  }
  return std::string::npos;
}

}  // namespace quell::config
