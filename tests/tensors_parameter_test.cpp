// Names, sizes and freezing of parameters.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "tensors/parameter.h"

using namespace quell;

namespace {

Parameter* add(ParameterList& list, const std::string& name) {
  return list.add(name, Role::matrix, 0, {2, 3}, Initial::constant(0));
}

}  // namespace

TEST_CASE("a parameter list finds by name, keeps addresses and counts elements", "[unit]") {
  ParameterList list;
  Parameter* first = add(list, "a");
  for (char c = '!'; c <= '`'; ++c) add(list, std::string(1, c));
  REQUIRE(list.find("a") == first);
  REQUIRE(first->name == "a");
  REQUIRE(list.find("c") == nullptr);
  REQUIRE(list.size() == 65);
  REQUIRE(list.numel() == 390);
  REQUIRE(list.add("scalar", Role::scale, 0, {}, Initial::constant(1))->numel() == 1);
}

TEST_CASE("a name that is declared twice is a bug", "[unit]") {
  ParameterList list;
  add(list, "blocks.0.attention.q.weight");
  REQUIRE_THROWS_AS(add(list, "blocks.0.attention.q.weight"), Bug);
}

TEST_CASE("freezing takes shell patterns and returns those that match nothing", "[unit]") {
  ParameterList list;
  for (const char* name : {"embedding.weight", "blocks.0.q.weight", "blocks.1.q.weight", "blocks.10.q.weight"}) {
    add(list, name);
  }
  const auto unmatched = list.freeze({"blocks.[01].*", "head.*", "embedding.weight"});
  REQUIRE(unmatched == std::vector<std::string>{"head.*"});
  REQUIRE(list.find("embedding.weight")->frozen);
  REQUIRE(list.find("blocks.0.q.weight")->frozen);
  REQUIRE(list.find("blocks.1.q.weight")->frozen);
  REQUIRE_FALSE(list.find("blocks.10.q.weight")->frozen);
}

TEST_CASE("every role has a name of its own", "[unit]") {
  for (Role a : all_roles) {
    REQUIRE(std::string(name_of(a)) != "?");
    for (Role b : all_roles) REQUIRE((a == b) == (std::string(name_of(a)) == name_of(b)));
  }
}
