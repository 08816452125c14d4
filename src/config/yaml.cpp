#include "config/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "config/strict_text.h"
#include "config/syntax.h"

namespace quell::config {
namespace {

// Ends parsing: what follows cannot be understood.
struct Stop {
  Mistake mistake;
};

// A collection whose end has not come yet.
struct Frame {
  Node node;
  bool is_flow = false;
  bool has_key = false;    // a map whose next event is a value
  bool drops_key = false;  // the key was a mistake: its value is read and forgotten
  std::string key;
  Place key_place;
  std::unordered_map<std::string, Place> seen;  // a linear search would take minutes on a hostile megabyte
};

class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& content, const YamlPart& part, Mistakes& mistakes)
      : content_(content), part_(part), mistakes_(mistakes) {
    for (size_t i = 0; i < content.size(); ++i) {
      if (content[i] == '\n') lines_.push_back(i + 1);
    }
  }

  Node root;

  // What is only a mistake if everything else was right: an unclosed bracket also makes long texts.
  void finish() {
    for (const Mistake& mistake : long_texts_.kept()) mistakes_.add(mistake);
  }
  SyntaxError explain(const YAML::Exception& error, Place& place) const;

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ < 2) return;
    const bool is_marker =
        content_.compare(offset(mark), 3, "---") == 0 || content_.rfind("\n...", offset(mark)) != std::string::npos;
    if (is_marker)
      stop(mark, "a second document begins here", "a run file is one document: remove it, or make two files");
    stop(mark, "text behind the end",
         part_.is_flow ? "put the whole value in quotes" : "remove it, or put it in quotes");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override;
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    note(place(mark), "aliases (*name) are not supported",
         "write the value again; put a text that begins with * in quotes");
    Node node;
    node.kind = Node::Kind::broken;
    node.place = place(mark);
    add(std::move(node));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override;
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, Node::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(mark, tag, anchor, style, Node::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  size_t offset(const YAML::Mark& mark) const {
    const auto line = std::min(static_cast<size_t>(std::max(mark.line, 0)), lines_.size() - 1);
    return std::min(lines_[line] + static_cast<size_t>(std::max(mark.column, 0)), content_.size());
  }
  char at(const YAML::Mark& mark) const { return offset(mark) < content_.size() ? content_[offset(mark)] : '\0'; }
  Place place(const YAML::Mark& mark, size_t width = 1) const { return place(offset(mark), width); }
  size_t end_of_line(size_t offset) const {
    const auto next = std::upper_bound(lines_.begin(), lines_.end(), offset);
    return next == lines_.end() ? content_.size() : *next - 1;
  }
  Place place(size_t offset, size_t width) const {
    const auto next = std::upper_bound(lines_.begin(), lines_.end(), offset);
    const auto line = static_cast<int>(next - lines_.begin());
    const int column = static_cast<int>(offset - *(next - 1)) + 1;
    return {part_.text, line, column + (line == 1 ? part_.column : 0), static_cast<int>(width)};
  }

  std::string path() const;  // of the node that comes next
  Mistake mistake(const Place& place, const std::string& message, const std::string& text) const {
    const std::string at = path();
    return {place, at.empty() ? message : at + ": " + message, {text}, {}};
  }
  void note(const Place& place, const std::string& message, const std::string& text) {
    const bool is_dropped =
        std::any_of(frames_.begin(), frames_.end(), [](const Frame& f) { return f.has_key && f.drops_key; });
    if (!is_dropped) mistakes_.add(mistake(place, message, text));
  }
  [[noreturn]] void stop(const YAML::Mark& mark, const std::string& message, const std::string& text) {
    throw Stop{mistake(place(mark), message, text)};
  }
  void check_properties(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor);
  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value style,
            Node::Kind kind);
  void close();
  void add(Node node);
  void add_key(Frame& frame, const Node& node);

  const std::string& content_;
  const YamlPart& part_;
  Mistakes& mistakes_;
  Mistakes long_texts_;
  std::vector<size_t> lines_{0};  // offsets at which lines begin
  std::vector<Frame> frames_;
  int documents_ = 0;
  size_t last_end_ = 0;  // offset behind the last scalar
};

std::string Builder::path() const {
  std::string out = part_.path;
  for (const Frame& frame : frames_) {
    if (frame.node.kind == Node::Kind::map && !frame.has_key) break;
    if (!out.empty()) out += '.';
    out += frame.node.kind == Node::Kind::map ? frame.key : cat(frame.node.items.size());
  }
  return out;
}

void Builder::check_properties(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
  if (anchor != 0) {
    note(place(mark), "anchors (&name) are not supported", "remove it; put a text that begins with & in quotes");
  }
  // yaml-cpp says "!" of quoted scalars too.
  if ((!tag.empty() && tag != "?" && tag != "!") || at(mark) == '!') {
    note(place(mark), "tags (!name) are not supported", "remove it; put a text that begins with ! in quotes");
  }
}

void Builder::OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) {
  check_properties(mark, "", anchor);
  Node node;
  const std::string_view rest = std::string_view(content_).substr(offset(mark));
  const bool is_written =
      rest.starts_with('~') || rest.starts_with("null") || rest.starts_with("Null") || rest.starts_with("NULL");
  const bool has_key = !frames_.empty() && frames_.back().has_key;
  node.place = is_written ? place(mark, rest.starts_with('~') ? 1 : 4)
               : has_key  ? frames_.back().key_place
                          : place(mark);
  add(std::move(node));
}

void Builder::OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       const std::string& value) {
  check_properties(mark, tag, anchor);
  const size_t begin = offset(mark);
  const char first = at(mark);
  Node node;
  node.kind = Node::Kind::scalar;
  node.text = value;
  size_t end = begin + 1;
  if (first == '"' || first == '\'') {
    node.is_quoted = true;
    end = end_of_quoted(content_, begin);
    // yaml-cpp closes a quote by itself where the file ends with a line end.
    if (end == std::string::npos) {
      const SyntaxError words = explain_syntax(YAML::ErrorMsg::EOF_IN_SCALAR, first);
      throw Stop{{place(mark), words.message, {words.note}, {}}};
    }
  } else if (first == '|' || first == '>') {
    node.is_quoted = true;
    if (part_.is_flow) stop(mark, "a block text is not possible here", "put the text in quotes");
  } else if (content_.compare(begin, value.size(), value) == 0) {
    end = begin + value.size();
  } else if (first != '!' && first != '&') {
    long_texts_.add(mistake(place(mark), "a text without quotes goes over several lines",
                            "put it in quotes, or indent the next line as a key of its own"));
  }
  if (value.find('\0') != std::string::npos) note(place(mark), "\\0 is not possible in a text", "remove it");
  node.place = place(begin, std::min(end, end_of_line(begin)) - begin);
  last_end_ = end;
  add(std::move(node));
}

void Builder::open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                   YAML::EmitterStyle::value style, Node::Kind kind) {
  check_properties(mark, tag, anchor);
  const bool is_block = style == YAML::EmitterStyle::Block;
  // An unclosed bracket looks like the key of a block map at first.
  if (is_block && part_.is_flow && at(mark) != '[' && at(mark) != '{') {
    stop(mark, "expected one value, {key: value} or [a, b]",
         "put a text that contains \": \" or begins with \"- \" in quotes");
  }
  if (frames_.size() == static_cast<size_t>(largest_depth)) {
    throw Stop{{place(mark),
                cat("nested more than ", largest_depth, " levels deep"),
                {"no key of a run file stands so deep"},
                {}}};
  }
  Frame frame;
  frame.is_flow = !is_block;
  frame.node.kind = kind;
  frame.node.place = is_block && !frames_.empty() && frames_.back().has_key ? frames_.back().key_place : place(mark);
  frames_.push_back(std::move(frame));
}

void Builder::close() {
  Node node = std::move(frames_.back().node);
  frames_.pop_back();
  add(std::move(node));
}

void Builder::add(Node node) {
  if (frames_.empty()) {
    root = std::move(node);
    return;
  }
  Frame& frame = frames_.back();
  if (frame.node.kind == Node::Kind::list) {
    frame.node.items.push_back(std::move(node));
  } else if (!frame.has_key) {
    add_key(frame, node);
  } else {
    if (!frame.drops_key) frame.node.entries.push_back({frame.key, frame.key_place, std::move(node)});
    frame.has_key = false;
  }
}

void Builder::add_key(Frame& frame, const Node& node) {
  frame.drops_key = true;
  if (node.kind != Node::Kind::scalar || node.text.empty()) {
    if (node.kind != Node::Kind::broken) note(node.place, "a key must be one word", "write `key: value`");
  } else if (node.text == "<<" && !node.is_quoted) {
    note(node.place, "merge keys (<<) are not supported", "write the keys out");
  } else if (const auto [seen, is_new] = frame.seen.emplace(node.text, node.place); !is_new) {
    const std::string at = path();
    mistakes_.add({node.place,
                   cat(at, at.empty() ? "" : ".", node.text, ": given twice"),
                   {"remove one of the two"},
                   seen->second});
  } else {
    frame.drops_key = false;
  }
  frame.has_key = true;
  frame.key = node.text;
  frame.key_place = node.place;
}

SyntaxError Builder::explain(const YAML::Exception& error, Place& where) const {
  where = place(error.mark);
  if (error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW || error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW) {
    const Node::Kind kind = error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW ? Node::Kind::map : Node::Kind::list;
    const char bracket = kind == Node::Kind::map ? '{' : '[';
    for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
      if (!frame->is_flow || frame->node.kind != kind) continue;
      where = frame->node.place;
      // Inside a list, `[a: b` is a map without a brace; yaml-cpp looks for its end all the same.
      const size_t begin = lines_[static_cast<size_t>(where.line - 1)];
      const size_t column = static_cast<size_t>(where.column - 1 - (where.line == 1 ? part_.column : 0));
      if (begin + column < content_.size() && content_[begin + column] == bracket) break;
    }
  }
  if (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) {
    if (const size_t open = find_open_quote(content_, last_end_); open != std::string::npos) where = place(open, 1);
  }
  return explain_syntax(error.msg, at(error.mark));
}

}  // namespace

std::optional<Node> parse_yaml(const std::string& content, const YamlPart& part, Mistakes& mistakes) {
  std::istringstream stream(content);
  Builder builder(content, part, mistakes);
  try {
    YAML::Parser parser(stream);
    // yaml-cpp may see documents without end in a text such as ","; the second one is an error at once.
    parser.HandleNextDocument(builder);
    parser.HandleNextDocument(builder);
  } catch (const Stop& stop) {
    mistakes.add(stop.mistake);
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    Place place;
    const SyntaxError words = builder.explain(error, place);
    mistakes.add({place, (part.path.empty() ? "" : part.path + ": ") + words.message, {words.note}, {}});
    return std::nullopt;
  }
  builder.finish();
  return std::move(builder.root);
}

}  // namespace quell::config
