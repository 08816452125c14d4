#include "config/print.h"

#include <algorithm>
#include <functional>

#include "base/text.h"

namespace quell::config {
namespace {

constexpr size_t widest_line = 110;
constexpr size_t origin_column = 44;

bool is_plain(const Printed& section) {
  return std::all_of(section.children.begin(), section.children.end(),
                     [](const Printed& child) { return child.shape == Printed::Shape::value; });
}

bool is_empty(const Printed& part) { return part.shape != Printed::Shape::value && part.children.empty(); }

std::string empty_text(const Printed& part) { return part.shape == Printed::Shape::list ? "[]" : "{}"; }

std::string flow(const Printed& section) {
  std::vector<std::string> parts;
  for (const Printed& child : section.children) parts.push_back(child.key + ": " + child.text);
  return "{" + join(parts, ", ") + "}";
}

// Whether a value that is not written changed; `standard` is its default, null where there is none to compare with.
const char* origin_of_unwritten(const Printed& value, const Printed* standard) {
  return standard && (standard->shape != value.shape || standard->text != value.text) ? "derived" : "default";
}

class Layout {
 public:
  explicit Layout(const Source* source) : source_(source) {}
  std::string text;

  void section(const std::vector<Printed>& children, const std::vector<Printed>* standard, const std::string& path,
               size_t indent) {
    for (const Printed& child : children) {
      part(child, standard ? find(*standard, child.key) : nullptr, path.empty() ? child.key : path + "." + child.key,
           indent);
    }
  }

 private:
  static const Printed* find(const std::vector<Printed>& parts, const std::string& key) {
    for (const Printed& part : parts) {
      if (part.key == key) return &part;
    }
    return nullptr;
  }

  void line(const std::string& written, const std::string& origin) {
    text += written;
    if (source_) {
      text += std::string(written.size() + 2 < origin_column ? origin_column - written.size() : 2, ' ') + "# " + origin;
    }
    text += '\n';
  }

  std::string origin(const Printed& value, const Printed* standard, const std::string& path) const {
    if (!source_) return "";
    const Source::Found found = source_->find(path);
    return found.is_exact ? label(source_->texts(), found.place) : origin_of_unwritten(value, standard);
  }

  void part(const Printed& printed, const Printed* standard, const std::string& path, size_t indent) {
    const std::string begin = std::string(indent, ' ') + printed.key + ":";
    if (printed.shape == Printed::Shape::value || is_empty(printed)) {
      line(begin + " " + (is_empty(printed) ? empty_text(printed) : printed.text), origin(printed, standard, path));
    } else if (const std::string flat = begin + " " + flow(printed); !source_ &&
                                                                     printed.shape == Printed::Shape::section &&
                                                                     is_plain(printed) && flat.size() <= widest_line) {
      line(flat, "");
    } else if (text += begin + "\n"; printed.shape == Printed::Shape::list) {
      for (size_t i = 0; i < printed.children.size(); ++i) element(printed.children[i], cat(path, ".", i), indent + 2);
    } else {
      section(printed.children, standard_of(printed, standard), path, indent + 2);
    }
  }

  static const std::vector<Printed>* standard_of(const Printed& printed, const Printed* standard) {
    if (standard && standard->alternative == printed.alternative) return &standard->children;
    return printed.standard.empty() ? nullptr : &printed.standard;
  }

  void element(const Printed& section_of_list, const std::string& path, size_t indent) {
    const std::string dash = std::string(indent, ' ') + "- ";
    if (const std::string flat = dash + flow(section_of_list);
        is_empty(section_of_list) || (!source_ && is_plain(section_of_list) && flat.size() <= widest_line)) {
      line(flat, "");
      return;
    }
    const size_t begin = text.size();
    section(section_of_list.children, &section_of_list.standard, path, indent + 2);
    text.replace(begin, dash.size(), dash);
  }

  const Source* source_;
};

}  // namespace

std::map<std::string, std::string> flattened(const Printed& root) {
  std::map<std::string, std::string> all;
  const std::function<void(const Printed&, const std::string&)> visit = [&](const Printed& part, const std::string& path) {
    if (part.shape == Printed::Shape::value) all[path] = part.text;
    for (size_t i = 0; i < part.children.size(); ++i) {
      const Printed& child = part.children[i];
      const std::string name = child.key.empty() ? std::to_string(i) : child.key;
      visit(child, path.empty() ? name : path + "." + name);
    }
  };
  visit(root, "");
  return all;
}

std::string layout(const Printed& root) {
  if (is_empty(root)) return "{}\n";
  Layout out(nullptr);
  out.section(root.children, nullptr, "", 0);
  return out.text;
}

std::string layout_with_origins(const Printed& root, const Printed& standard, const Source& source) {
  if (is_empty(root)) return "{}\n";
  Layout out(&source);
  out.section(root.children, &standard.children, "", 0);
  return out.text;
}

}  // namespace quell::config
