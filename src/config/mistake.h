// Where a value was written, and mistakes that point there: each is shown with its place, the source line with a caret,
// and what is allowed. Collects and renders only; it never decides what a mistake is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quell::config {

struct Place {
  int text = 0;    // 0: the run file; 1, 2, ...: the overrides in their order
  int line = 0;    // from 1; 0 stands for the text as a whole
  int column = 0;  // from 1, in bytes
  int width = 1;   // bytes that the caret underlines
};
bool operator<(const Place& a, const Place& b);

// A run file, or one override as the user wrote it.
struct Text {
  std::string name;  // "run.yaml", "--set model.layers=12"
  std::string content;
  bool is_file = true;
};

struct Mistake {
  Place place;
  std::string message;             // begins with the key: `model.layers: expected an integer, got "twelve"`
  std::vector<std::string> notes;  // what is allowed, what to do
  std::optional<Place> first;      // of a key that is given twice
};

// The first thousand are kept, so that no input can fill the memory with what is wrong in it.
class Mistakes {
 public:
  void add(Mistake mistake);
  bool empty() const { return kept_.empty(); }
  size_t size() const { return kept_.size() + dropped_; }
  const std::vector<Mistake>& kept() const { return kept_; }

 private:
  std::vector<Mistake> kept_;
  size_t dropped_ = 0;
};

// "run.yaml:4:9" (columns in characters), or the override's text.
std::string label(const std::vector<Text>& texts, const Place& place);

// All mistakes in order of place, at most 20 in full.
std::string render(const std::vector<Text>& texts, const Mistakes& mistakes);

// A value inside a message: in double quotes, cut after 60 bytes.
std::string quoted(std::string_view text);

}  // namespace quell::config
