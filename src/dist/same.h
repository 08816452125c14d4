// Whether ranks hold the same numbers, as they must: a bit that flipped in one machine's memory spoils the run without a sign of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "dist/world.h"
#include "tensors/state.h"

namespace quell {

struct Difference {
  std::string tensor;      // the first, in the order of names, that is not the same bits everywhere
  std::vector<int> ranks;  // those that are not with the majority; where there is none (two ranks), all
};
// On every rank, with the same names and shapes; the same answer on all. In a world of one nothing is read.
std::optional<Difference> first_difference(const World& world, const State& state);
std::string text_of(const Difference& difference);

}  // namespace quell
