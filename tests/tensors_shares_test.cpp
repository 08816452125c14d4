// Which elements of which parameter each of several owners has.
#include "base/error.h"
#include "support.h"
#include "tensors/shares.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

namespace quell {
namespace {

// Parameters smaller than a share, as large, and larger; a unit of one element.
struct Model {
  ParameterList list;
  Model() {
    list.add("embedding", Role::embedding, 0, {7, 3}, Initial::constant(0));
    list.add("block.a", Role::matrix, 1, {33, 17}, Initial::constant(0));
    list.add("block.b", Role::bias, 1, {16}, Initial::constant(0));
    list.add("block.frozen", Role::matrix, 1, {4, 4}, Initial::constant(0))->frozen = true;
    list.add("block.c", Role::matrix, 1, {5, 64}, Initial::constant(0));
    list.add("scale", Role::scale, 2, {1}, Initial::constant(0));
  }
};

}  // namespace

TEST_CASE("the shares of all owners hold every element of every parameter once, in its place", "[unit]") {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp64}) {
    for (const int64_t owners : {1, 2, 3, 8}) {
      Model model;
      const Arena arena(model.list, {.precision = precision, .world = owners});
      std::map<const Parameter*, at::Tensor> seen;
      for (const Parameter& parameter : model.list) seen[&parameter] = at::zeros({parameter.numel()}, at::kLong);
      for (int64_t owner = 0; owner < owners; ++owner) {
        const Share share{owner, owners};
        at::Tensor taken = at::zeros({share_size(arena, share)}, at::kLong);
        for (const Piece& piece : pieces_of(arena, model.list, share)) {
          const int64_t size = piece.in_arena.size();
          if (size == 0) continue;
          CHECK(piece.in_arena.begin == arena.range(*piece.parameter).begin + piece.begin);
          seen.at(piece.parameter).narrow(0, piece.begin, size) += 1;
          taken.narrow(0, piece.in_share, size) += 1;
        }
        CHECK(taken.le(1).all().item<bool>());  // no element of the buffer for two
      }
      for (const Parameter& parameter : model.list) {
        INFO(parameter.name << " of " << owners);
        CHECK(seen.at(&parameter).eq(parameter.frozen ? 0 : 1).all().item<bool>());
      }
    }
  }
}

TEST_CASE("each unit is divided evenly, and an owner's parts follow each other in the order of units", "[unit]") {
  Model model;
  const Arena arena(model.list, {.world = 3});
  for (int64_t owner = 0; owner < 3; ++owner) {
    for (const Piece& piece : pieces_of(arena, model.list, {owner, 3})) {
      if (piece.in_arena.size() == 0) continue;
      int64_t before = 0;  // elements of this owner's parts of earlier units
      for (const Range& unit : arena.units()) {
        if (piece.in_arena.begin >= unit.end) before += unit.size() / 3;
        else if (piece.in_arena.begin >= unit.begin) CHECK(piece.in_share == before + piece.in_arena.begin - (unit.begin + owner * unit.size() / 3));
      }
    }
  }
}

TEST_CASE("more owners than the arena was padded for are a bug", "[unit]") {
  Model model;
  const Arena arena(model.list, {.world = 2});
  CHECK_NOTHROW(pieces_of(arena, model.list, {0, 2}));
  CHECK_THROWS_AS(pieces_of(arena, model.list, {0, 7}), Bug);
  CHECK_THROWS_AS(pieces_of(arena, model.list, {2, 2}), Bug);
}

}  // namespace quell
