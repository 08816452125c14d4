#include "tensors/shares.h"

#include <algorithm>

#include "base/error.h"

namespace quell {

std::vector<Piece> pieces_of(const Arena& arena, const ParameterList& parameters, Share share) {
  require(share.owner >= 0 && share.owner < share.owners, "shares: no such owner");
  for (const Range& unit : arena.units()) require(unit.size() % share.owners == 0, "shares: a unit is not padded for as many owners");
  std::vector<Piece> pieces;
  for (const Parameter& parameter : parameters) {
    if (parameter.frozen) continue;
    const Range whole = arena.range(parameter);
    const auto unit = std::find_if(arena.units().begin(), arena.units().end(), [&](const Range& u) { return whole.begin >= u.begin && whole.begin < u.end; });
    const int64_t size = unit->size() / share.owners, part = unit->begin + share.owner * size;
    const int64_t begin = std::clamp(whole.begin, part, part + size), end = std::clamp(whole.end, part, part + size);
    const bool none = begin == end;
    // Units follow each other without gaps, so that what lies before one in the arena lies before it in every share, divided.
    pieces.push_back({&parameter, none ? 0 : begin - whole.begin, {begin, end}, unit->begin / share.owners + begin - part});
  }
  return pieces;
}

int64_t share_size(const Arena& arena, Share share) { return arena.trainable() / share.owners; }

}  // namespace quell
