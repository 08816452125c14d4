// A run file and the overrides of the command line as one tree of YAML nodes that remember where they were written.
// Knows no types: config/load.h turns the tree into structs.
#pragma once

#include <string>
#include <vector>

#include "config/mistake.h"
#include "config/node.h"
#include "config/overrides.h"

namespace quell::config {

class Source {
 public:
  // UsageError where there is no such file, or it is larger than 1 MiB. Mistakes inside are kept for load(), which
  // reports all.
  static Source from_file(const std::string& path, const std::vector<Override>& overrides = {});
  // `name` is what messages call the text.
  static Source from_text(std::string text, std::string name, const std::vector<Override>& overrides = {});

  // False where the text is no YAML map: then only its own mistakes can be reported.
  bool is_readable() const { return is_readable_; }
  const Node& root() const { return root_; }
  const std::vector<Text>& texts() const { return texts_; }
  const Mistakes& mistakes() const { return mistakes_; }

  struct Found {
    Place place;
    bool is_exact = false;  // false: only a section around it was written
  };
  // Where the value of `path` ("evaluate.sets.0.data") was written, or the innermost section around it that was.
  Found find(const std::string& path) const;

 private:
  void read_file();
  void apply(const Override& override);

  Node root_;
  std::vector<Text> texts_;
  Mistakes mistakes_;
  bool is_readable_ = false;
};

}  // namespace quell::config
