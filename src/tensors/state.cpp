#include "tensors/state.h"

#include "base/text.h"

namespace quell {
namespace {

template <class T>
void add_all(std::map<std::string, T>& all, const std::string& prefix, const std::map<std::string, T>& part) {
  for (const auto& [name, value] : part) all[cat(prefix, ".", name)] = value;
}

template <class T>
std::map<std::string, T> behind(const std::map<std::string, T>& all, const std::string& prefix) {
  const std::string begin = prefix + ".";
  std::map<std::string, T> part;
  for (auto at = all.lower_bound(begin); at != all.end() && at->first.starts_with(begin); ++at) {
    part[at->first.substr(begin.size())] = at->second;
  }
  return part;
}

template <class T>
void compare_names(std::vector<std::string>& problems, const std::map<std::string, T>& live, const std::map<std::string, T>& stored) {
  for (const auto& [name, value] : live) {
    if (!stored.contains(name)) problems.push_back("missing: " + name);
  }
  for (const auto& [name, value] : stored) {
    if (!live.contains(name)) problems.push_back("of no use here: " + name);
  }
}

std::vector<int64_t> shape_of(const State& state, const std::string& name) {
  const auto extract = state.extracts.find(name);
  return extract == state.extracts.end() ? state.tensors.at(name).sizes().vec() : extract->second.shape;
}

}  // namespace

State copied(const State& state) {
  State copy = state;
  for (auto& [name, tensor] : copy.tensors) tensor = tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  return copy;
}

void add_part(State& all, const std::string& prefix, const State& part) {
  add_all(all.tensors, prefix, part.tensors);
  add_all(all.integers, prefix, part.integers);
  add_all(all.numbers, prefix, part.numbers);
  add_all(all.extracts, prefix, part.extracts);
}

State part_of(const State& all, const std::string& prefix) {
  return {behind(all.tensors, prefix), behind(all.integers, prefix), behind(all.numbers, prefix), behind(all.extracts, prefix)};
}

std::vector<std::string> misfits(const State& live, const State& stored) {
  std::vector<std::string> problems;
  compare_names(problems, live.tensors, stored.tensors);
  compare_names(problems, live.integers, stored.integers);
  compare_names(problems, live.numbers, stored.numbers);
  for (const auto& [name, tensor] : live.tensors) {
    const auto found = stored.tensors.find(name);
    if (found == stored.tensors.end()) continue;
    const at::Tensor& other = found->second;
    const std::vector<int64_t> needed = shape_of(live, name), there = shape_of(stored, name);
    if (there == needed && other.scalar_type() == tensor.scalar_type()) continue;
    problems.push_back(cat(name, ": ", other.scalar_type(), " ", at::IntArrayRef(there), " is stored, ", tensor.scalar_type(), " ", at::IntArrayRef(needed), " is needed"));
  }
  return problems;
}

void copy_tensors(const State& live, const State& stored) {
  const at::NoGradGuard no_gradients;
  for (const auto& [name, tensor] : live.tensors) {
    at::Tensor from = stored.tensors.at(name);
    const auto extract = live.extracts.find(name);
    if (extract != live.extracts.end() && !stored.extracts.contains(name)) from = from.reshape({-1}).narrow(0, extract->second.begin, tensor.numel());
    at::Tensor(tensor).detach().copy_(from);
  }
}

}  // namespace quell
