// The texts of `quell data prepare`, document by document: a UTF-8 file is one document, a .jsonl file has one a line,
// {"text": ...} or {"prompt": ..., "answer": ...}. A file is mapped and never held in memory whole (standard input is).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/files.h"

namespace quell {

struct Document {
  std::string_view prompt;  // not scored; empty but for prompt/answer lines
  std::string_view text;    // scored
  bool has_prompt = false;
};

class TextFile {
 public:
  // `path` "-" is standard input. Throws DataError where it does not exist, is empty, or is not UTF-8 (the byte's
  // offset).
  explicit TextFile(const std::string& path);
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  const std::string& name() const { return name_; }
  uint64_t bytes() const { return text_.size(); }
  bool has_lines() const { return lines_; }  // a document a line

  // Takes a UTF-8 byte order mark off the front of a text: false where there is none. Throws DataError where nothing else is
  // there. In .jsonl it is no part of any document, and the parser passes over it.
  bool drop_byte_order_mark();
  struct LineEnds {
    int64_t all = 0, crlf = 0;
  };
  LineEnds line_ends() const;  // of a text; none for .jsonl, where they are no part of any document

  // Visits what belongs to training first, then what is held back: the last `valid` of the characters (of the lines,
  // for .jsonl). Throws DataError with file:line on a bad line, and where one of the two parts would be empty although
  // valid > 0.
  void visit(double valid, const std::function<void(const Document& document, bool held_back)>& visitor) const;

 private:
  void visit_text(double valid, const std::function<void(const Document&, bool)>& visitor) const;
  void visit_lines(double valid, const std::function<void(const Document&, bool)>& visitor) const;
  int64_t training_part(int64_t count, const char* what, double valid) const;

  std::string name_;
  bool lines_ = false;
  files::Mapping mapping_;
  std::string read_;
  std::string_view text_;
};

}  // namespace quell
