// What a stateful part hands over to be saved and takes back to be restored: named tensors and named numbers. Names are
// joined with '.', a prefix a part: "optimizer.first.output.weight", "finite.in_a_row".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace quell {

// Which elements, row by row, a flat tensor holds of a larger one, of which other ranks hold the rest.
struct Extract {
  std::vector<int64_t> shape;  // of the whole
  int64_t begin = 0;
};

struct State {
  std::map<std::string, at::Tensor> tensors;  // views of what the part works on, unless copied() made it
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
  std::map<std::string, Extract> extracts{};  // of the tensors that are one; on every rank the same names, some of them of no element
};

// With tensors of its own, on the CPU.
State copied(const State& state);

// Adds `part`, each name behind "prefix.".
void add_part(State& all, const std::string& prefix, const State& part);
// The other way round: what stands behind "prefix.", without it.
State part_of(const State& all, const std::string& prefix);

// What keeps `stored` from taking the place of `live`: every name that is missing or of no use, every tensor of another shape (of the
// whole) or type. Empty where it fits.
std::vector<std::string> misfits(const State& live, const State& stored);

// Copies the stored tensors into the live ones, which have the same names: into an extract its elements of a whole, or the same extract.
void copy_tensors(const State& live, const State& stored);

}  // namespace quell
