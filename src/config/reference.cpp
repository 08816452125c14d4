#include "config/reference.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/hints.h"
#include "config/node.h"

namespace quell::config {
namespace {

std::string type_text(const Key& key) {
  switch (key.type.shape) {
    case Type::Shape::section: return "a section";
    case Type::Shape::variant: return "a section whose keys follow from its kind";
    case Type::Shape::sections: return "a list of sections";
    case Type::Shape::named: return "sections with names of your choice";
    default: break;
  }
  Key without_range = key;
  without_range.info.low = -std::numeric_limits<double>::infinity();
  without_range.info.high = std::numeric_limits<double>::infinity();
  return key.type.scalar == Type::Scalar::choice ? expected(key.type, key.info) : allowed(key.type, without_range.info);
}

// Children of a section in all its alternatives.
std::vector<const Key*> children_of(const std::vector<Key>& keys, const Key& section) {
  std::string parent = section.path;
  if (section.type.shape == Type::Shape::sections) parent += ".N";
  if (section.type.shape == Type::Shape::named) parent += ".NAME";
  std::vector<const Key*> out;
  for (const Key& key : keys) {
    if (parent_of(key.path) == parent) out.push_back(&key);
  }
  return out;
}

std::string choices_text(const Key& key) {
  std::string out;
  size_t width = 0;
  for (const ChoiceText& choice : key.type.choices) width = std::max(width, std::string_view(choice.name).size());
  for (const ChoiceText& choice : key.type.choices) {
    const std::string name = choice.name;
    out += "    " + name + (*choice.help ? std::string(width + 2 - name.size(), ' ') + choice.help : "") + "\n";
  }
  return out;
}

// The key as nested YAML.
std::string place_text(const std::string& path, const std::string& value) {
  std::string out;
  std::string indent = "    ";
  bool is_element = false;
  const std::vector<std::string> parts = split_path(path);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] == "N" || is_index(parts[i])) {
      is_element = true;
      continue;
    }
    out += indent + (is_element ? "- " : "") + parts[i] + ":" + (i + 1 == parts.size() ? value : "") + "\n";
    indent += is_element ? "    " : "  ";
    is_element = false;
  }
  return out;
}

// In quotes where a shell would take the word apart.
std::string in_shell(const std::string& word) {
  const bool is_plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("_./=:+-,").find(static_cast<char>(c)) != std::string_view::npos;
  });
  return is_plain ? word : "'" + word + "'";
}

std::string explain_key(const std::vector<Key>& keys, const Key& key, const std::string& path) {
  std::string out = path + "\n  " + key.info.text + "\n\n";
  const auto row = [&](const char* name, const std::string& text) {
    if (!text.empty()) out += cat("  ", name, std::string(10 - std::string_view(name).size(), ' '), text, "\n");
  };
  row("type", type_text(key));
  row("range", range(key.info));
  row("unit", key.info.unit_text);
  row("default", key.standard);
  row("only with", key.condition);
  if (key.type.scalar == Type::Scalar::choice && !is_section(key.type)) out += "  choices\n" + choices_text(key);
  if (is_section(key.type)) {
    out += "  keys\n";
    size_t width = 0;
    const std::vector<const Key*> children = children_of(keys, key);
    for (const Key* child : children) width = std::max(width, last_part(child->path).size());
    for (const Key* child : children) {
      const std::string name = last_part(child->path);
      out += "    " + name + std::string(width + 2 - name.size(), ' ') + child->info.text +
             (child->condition.empty() ? "" : cat(" (", child->condition, ")")) + "\n";
    }
    return out;
  }
  return out + "  in a run file\n" + place_text(path, " " + key.standard) + "  on the command line\n    " +
         in_shell(path + "=" + key.standard) + "\n";
}

// In a table cell "|" ends the cell.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string meaning(const Key& key) {
  std::string out = key.info.text;
  if (key.type.scalar == Type::Scalar::choice && !is_section(key.type)) {
    for (const ChoiceText& choice : key.type.choices) {
      out += cat("<br>`", choice.name, "`", *choice.help ? ": " : "", choice.help);
    }
  }
  return cell(out);
}

std::string row(const Key& key) {
  const std::string limits = range(key.info);
  const std::string type = type_text(key) + (limits.empty() ? "" : ", " + limits) +
                           (*key.info.unit_text ? cat(" (", key.info.unit_text, ")") : "");
  const std::string standard = key.standard.empty() ? "" : "`" + key.standard + "`";
  return cat("| `", last_part(key.path), "` | ", cell(type), " | ", cell(standard), " | ", meaning(key), " |\n");
}

// The rows below a heading: keys of one section under one condition.
struct Table {
  std::string section, condition, text;
};

}  // namespace

std::string explain(const std::vector<Key>& keys, const std::string& path) {
  std::string out;
  for (const Key& key : keys) {
    if (matches(key, path)) out += (out.empty() ? "" : "\n") + explain_key(keys, key, path);
  }
  if (!out.empty()) return out;
  std::string message = path + ": unknown key";
  for (const std::string& hint : path_hints(keys, path)) message += "\n  " + hint;
  throw UsageError(message);
}

std::string reference(const std::vector<Key>& keys) {
  std::vector<Table> tables;
  for (const Key& key : keys) {
    const std::string section = parent_of(key.path);
    auto table = std::find_if(tables.begin(), tables.end(),
                              [&](const Table& t) { return t.section == section && t.condition == key.condition; });
    if (table == tables.end()) table = tables.insert(tables.end(), {section, key.condition, ""});
    table->text += row(key);
  }
  std::string out =
      "# Keys of a run file\n\n"
      "`N` stands for the index of a list's element, `NAME` for a name of your choice. What is not written has its "
      "default.\n";
  for (const Table& table : tables) {
    out += "\n## " + (table.section.empty() ? "Top level" : table.section);
    if (!table.condition.empty()) out += " (" + table.condition + ")";
    out += "\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n" + table.text;
  }
  return out;
}

}  // namespace quell::config
