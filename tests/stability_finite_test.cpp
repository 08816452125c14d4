// The finite policy over sequences of good and bad steps.
#include "stability/finite.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;

TEST_CASE("the policy stop ends the run at the first bad step", "[unit]") {
  FinitePolicy policy({.on_nonfinite = OnNonfinite::stop, .skip_limit = 10});
  CHECK_FALSE(policy.must_stop(false));
  CHECK(policy.must_stop(true));
  CHECK(policy.skipped() == 0);
}

TEST_CASE("the policy skip leaves out skip_limit bad steps in a row and ends the run at one more", "[unit]") {
  FinitePolicy policy({.on_nonfinite = OnNonfinite::skip, .skip_limit = 2});
  for (const bool bad : {true, true, false, true, true}) CHECK_FALSE(policy.must_stop(bad));
  CHECK(policy.skipped() == 4);
  CHECK(policy.in_a_row() == 2);
  CHECK(policy.must_stop(true));
  CHECK(policy.skipped() == 4);
  CHECK(policy.in_a_row() == 3);
}

TEST_CASE("a good step ends a row of bad ones", "[unit]") {
  FinitePolicy policy({.on_nonfinite = OnNonfinite::skip, .skip_limit = 1});
  for (int i = 0; i < 20; ++i) {
    CHECK_FALSE(policy.must_stop(true));
    CHECK_FALSE(policy.must_stop(false));
    CHECK(policy.in_a_row() == 0);
  }
  CHECK(policy.skipped() == 20);
}
