// Hints for the names of other trainers, held against the keys that a run file really has.
#include <catch2/catch.hpp>

#include "config/hints.h"
#include "train/config.h"

namespace quell {

TEST_CASE("every name of another trainer points at a key that exists, and the hint for it says so", "[unit]") {
  const std::vector<config::Key>& keys = config::keys_of<RunConfig>();
  int targets = 0;
  for (const config::ForeignName& foreign : config::foreign_names()) {
    INFO(foreign.name << " -> " << foreign.key);
    const std::string target = foreign.key;
    if (!target.empty()) {
      ++targets;
      CHECK(config::find_key(keys, target) != nullptr);
    }
    // What a user sees who writes it at the top level: no other guess comes before it.
    const std::vector<std::string> hints = config::hints(keys, "", foreign.name, {});
    REQUIRE(hints.size() == 1);
    CHECK_THAT(hints.front(), Catch::Contains(target.empty() ? foreign.remark : " is " + target + " here"));
  }
  CHECK(targets > 100);
}

}  // namespace quell
