#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

constexpr size_t deepest = 64;

// Lets the builder below know how far nlohmann's lexer has read, which its own interface does not tell.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** furthest = nullptr;
  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    *furthest = ++at;
    return *this;
  }
  CountingIterator operator++(int) {
    const auto old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
  bool operator!=(const CountingIterator& other) const { return at != other.at; }
};

// Builds the document and throws at the first fault. nlohmann's own builder keeps the last of two equal names.
class Builder {
 public:
  Builder(std::string_view text, const std::string& name, int64_t first_line)
      : text_(text), name_(name), first_line_(first_line), furthest_(text.data()) {}

  CountingIterator begin() { return {text_.data(), &furthest_}; }
  CountingIterator end() { return {text_.data() + text_.size(), &furthest_}; }
  Json take() { return std::move(root_); }

  // nlohmann's lexer takes one for the end of the text and would not see what follows.
  void refuse_zero_bytes() {
    if (const size_t at = text_.find('\0'); at != std::string_view::npos) fail(at, "a zero byte");
  }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(int64_t value) { return put(value); }
  bool number_unsigned(uint64_t value) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool number_float(double value, const std::string& written) {
    if (!std::isfinite(value)) fail(read_so_far(), cat("the number ", written, " is not finite"));
    return put(value);
  }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!open_.back().names.insert(name).second) fail(start_of_key(), cat("the name \"", name, "\" stands twice"));
    // Json::operator[] searches all names before it adds one, which is quadratic for the headers of large checkpoints.
    auto& members = open_.back().value->get_ref<Json::object_t&>();
    members.emplace_back(name, nullptr);
    next_ = &members.back().second;
    return true;
  }

  template <class Problem>
  bool parse_error(size_t byte, const std::string&, const Problem& problem) {
    std::string message = problem.what();
    for (const char* noise : {"[json.exception.", "parse error at"}) {
      const size_t end = message.starts_with(noise) ? message.find(noise[0] == '[' ? "] " : ": ") : std::string::npos;
      if (end != std::string::npos) message.erase(0, end + 2);
    }
    fail(byte == 0 ? 0 : byte - 1, message);
  }

 private:
  struct Level {
    Json* value;
    std::unordered_set<std::string> names;
  };

  [[noreturn]] void fail(size_t byte, std::string message) const {
    const std::string_view before = text_.substr(0, std::min(byte, text_.size()));
    const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto line = first_line_ + std::count(before.begin(), before.end(), '\n');
    if (message.size() > 300) message = message.substr(0, 300) + "...";
    throw DataError(cat(name_, ":", line, ":", before.size() - line_start + 1, ": not valid JSON: ", message));
  }

  size_t read_so_far() const { return static_cast<size_t>(furthest_ - text_.data()) - 1; }
  size_t start_of_key() const {
    size_t at = read_so_far();
    while (true) {
      at = text_.rfind('"', at - 1);
      if ((at - 1 - text_.find_last_not_of('\\', at - 1)) % 2 == 0) return at;
    }
  }

  template <class Value>
  bool put(Value&& value) {
    *place() = std::forward<Value>(value);
    return true;
  }
  Json* place() {
    if (open_.empty()) return &root_;
    Json& parent = *open_.back().value;
    if (!parent.is_array()) return next_;
    parent.push_back(nullptr);
    return &parent.back();
  }
  bool open(Json&& empty) {
    if (open_.size() == deepest) fail(read_so_far(), cat("nested deeper than ", deepest));
    Json* here = place();
    *here = std::move(empty);
    open_.push_back({here, {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& name_;
  int64_t first_line_;
  const char* furthest_;
  Json root_;
  std::vector<Level> open_;  // pointers stay good: a container does not grow while one inside it is open
  Json* next_ = nullptr;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& name, int64_t first_line) {
  Builder builder(text, name, first_line);
  builder.refuse_zero_bytes();
  Json::sax_parse(builder.begin(), builder.end(), &builder);
  return builder.take();
}

}  // namespace quell
