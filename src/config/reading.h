// The part of loading that does not depend on a struct's type: scalars, unknown keys, and the mistakes found on the
// way. config/load.h is the visitor above it.
#pragma once

#include <string>
#include <vector>

#include "config/keys.h"
#include "config/node.h"
#include "config/source.h"

namespace quell::config {

// One field that is being read.
struct Spot {
  const Node& node;
  const std::string& path;
  const FieldInfo& info;
  Type (*type)();
};

class Reading {
 public:
  using KeyList = const std::vector<Key>& (*)();
  Reading(const Source& source, KeyList keys) : source_(source), keys_(keys), mistakes_(source.mistakes()) {}

  // Each returns whether `value` was set; if not, the mistake is noted.
  bool read(const Spot& spot, bool& value) { return read_scalar(spot, value); }
  bool read(const Spot& spot, int64_t& value) { return read_scalar(spot, value); }
  bool read(const Spot& spot, double& value) { return read_scalar(spot, value); }
  bool read(const Spot& spot, std::string& value);
  int read_choice(const Spot& spot, std::span<const ChoiceText> choices);  // an index, or -1
  // A name of the user's choice, or a list's index below `size` (-1: there is none).
  bool read_name(const Entry& entry, const std::string& path);
  int read_index(const Entry& entry, const std::string& path, size_t size);

  const Node& nothing() const { return nothing_; }
  bool is_absent(const Spot& spot) const;
  bool is_section(const Spot& spot);                          // a map, or nothing, which means defaults
  bool is_list(const Spot& spot, size_t length, bool exact);  // a list of any length, or of exactly `length`
  void note_wrong_type(const Spot& spot) { note_value(spot, {}); }

  // Notes every key of `map` that is not in `names`; returns whether there is none.
  bool check_names(const Node& map, const std::string& path, const std::vector<std::string>& names);
  void note(const Problems& problems, const std::string& path);
  // Throws UsageError with all mistakes, the source's included, in order of place; returns where there is none.
  void finish() const;

 private:
  template <class T>
  bool read_scalar(const Spot& spot, T& value);
  void note_value(const Spot& spot, const Complaint& complaint);
  bool is_left_over(const Entry& entry, const std::string& path) const;

  const Source& source_;
  KeyList keys_;
  Mistakes mistakes_;
  Node nothing_;  // stands in for a section that is not written
};

}  // namespace quell::config
