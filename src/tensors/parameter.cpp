// Names, sizes and freezing of parameters. Memory is the arena's matter (arena.cpp), values are fill.cpp's.
#include "tensors/parameter.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"

namespace quell {

const char* name_of(Role role) {
  switch (role) {
    case Role::matrix: return "matrix";
    case Role::embedding: return "embedding";
    case Role::output: return "output";
    case Role::norm_weight: return "norm_weight";
    case Role::qk_norm_weight: return "qk_norm_weight";
    case Role::scale: return "scale";
    case Role::bias: return "bias";
  }
  return "?";
}

int64_t Parameter::numel() const {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;
  return n;
}

Parameter* ParameterList::add(std::string name, Role role, int64_t unit, std::vector<int64_t> shape, Initial initial) {
  if (find(name) != nullptr) throw Bug("parameter " + name + ": declared twice");
  Parameter& parameter = all_.emplace_back();
  parameter.name = std::move(name);
  parameter.role = role;
  parameter.unit = unit;
  parameter.shape = std::move(shape);
  parameter.initial = initial;
  return &parameter;
}

Parameter* ParameterList::find(std::string_view name) {
  auto found = std::find_if(all_.begin(), all_.end(), [&](const Parameter& p) { return p.name == name; });
  return found == all_.end() ? nullptr : &*found;
}

int64_t ParameterList::numel() const {
  int64_t n = 0;
  for (const Parameter& parameter : all_) n += parameter.numel();
  return n;
}

std::vector<std::string> ParameterList::freeze(const std::vector<std::string>& patterns) {
  std::vector<std::string> unmatched;
  for (const std::string& pattern : patterns) {
    bool matched = false;
    for (Parameter& parameter : all_) {
      if (fnmatch(pattern.c_str(), parameter.name.c_str(), 0) != 0) continue;
      require(!parameter.value.defined(), "freeze: the arena is built already");
      parameter.frozen = matched = true;
    }
    if (!matched) unmatched.push_back(pattern);
  }
  return unmatched;
}

}  // namespace quell
