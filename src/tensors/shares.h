// How the elements of all units are divided among several owners, each of which keeps the optimiser's moments of its part alone: of every
// unit the first owner has the first of as many equal parts as there are owners, and so on. Parts know nothing of parameters: a
// parameter's elements may lie in several.
#pragma once

#include <vector>

#include "tensors/arena.h"

namespace quell {

struct Share {
  int64_t owner = 0, owners = 1;
};

// What of one parameter lies in a share: possibly nothing, and never more than one run of elements.
struct Piece {
  const Parameter* parameter = nullptr;
  int64_t begin = 0;     // the first of its elements, row by row
  Range in_arena;        // where they are in values and gradients
  int64_t in_share = 0;  // where in a buffer that holds the parts of all units one after another
};

// One for every trainable parameter, in the order of the list. Owners must divide every unit, as those do for whom the arena was padded (else Bug).
std::vector<Piece> pieces_of(const Arena& arena, const ParameterList& parameters, Share share);

// Elements of such a buffer.
int64_t share_size(const Arena& arena, Share share);

}  // namespace quell
