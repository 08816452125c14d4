// When alarms begin, that each is raised once, and what they say.
#include <limits>

#include "stability/health.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

HealthReport logits(std::vector<double> bound, std::vector<double> exact = {}) {
  HealthReport report;
  report.layers.resize(4);
  report.layers[3].logit_bound = std::move(bound);
  report.layers[3].logit_max = std::move(exact);
  return report;
}

HealthReport entropy(std::vector<double> relative) {
  HealthReport report;
  report.layers.resize(2);
  report.layers[1].entropy_relative = std::move(relative);
  return report;
}

}  // namespace

TEST_CASE("a logit above 1000 is a warning and above 10000 critical, each once when it begins", "[unit]") {
  HealthAlarms alarms;
  CHECK(alarms.look(logits({30, 1000}), 10).empty());
  const auto warning = alarms.look(logits({30, 1532}), 20);
  REQUIRE(warning.size() == 1);
  CHECK_FALSE(warning[0].critical);
  CHECK(warning[0].message == "layer 3: largest attention logit (upper bound) 1532 is above 1000 in head 1 at step 20; "
                              "model.attention.qk_norm bounds it, a lower optimizer.lr slows its growth");
  CHECK(alarms.look(logits({30, 9000}), 30).empty());
  const auto critical = alarms.look(logits({1, 2}, {12345, 30}), 40);
  REQUIRE(critical.size() == 1);
  CHECK(critical[0].critical);
  CHECK(critical[0].message == "layer 3: largest attention logit 1.234e+04 is above 10000 in head 0 at step 40; "
                               "model.attention.qk_norm bounds it, a lower optimizer.lr slows its growth");
  CHECK(alarms.look(logits({20000}), 50).empty());
}

TEST_CASE("a logit that hovers around the limit is one alarm, one that came back from far below another", "[unit]") {
  HealthAlarms alarms;
  CHECK(alarms.look(logits({1100}), 1).size() == 1);
  CHECK(alarms.look(logits({900}), 2).empty());
  CHECK(alarms.look(logits({1100}), 3).empty());
  CHECK(alarms.look(logits({400}), 4).empty());
  CHECK(alarms.look(logits({1100}), 5).size() == 1);
}

TEST_CASE("the exact logit decides where it was measured", "[unit]") {
  HealthAlarms alarms;
  CHECK(alarms.look(logits({1003}, {998}), 1).empty());
}

TEST_CASE("a logit that is not a number is critical, whichever head it is in", "[unit]") {
  for (const std::vector<double>& heads : {std::vector<double>{not_a_number, 5}, {5, not_a_number}}) {
    HealthAlarms alarms;
    const auto found = alarms.look(logits(heads), 7);
    REQUIRE(found.size() == 1);
    CHECK(found[0].critical);
    CHECK(found[0].message == "layer 3: largest attention logit (upper bound) is not a number in head " +
                                  std::string(heads[0] == 5 ? "1" : "0") + " at step 7");
    CHECK(alarms.look(logits(heads), 8).empty());
  }
}

TEST_CASE("infinite logits are critical and minus infinity is none", "[unit]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  HealthAlarms alarms;
  CHECK(alarms.look(logits({-infinity}), 1).empty());
  CHECK(alarms.look(logits({infinity}), 2).size() == 1);
}

TEST_CASE("relative entropy below 0.05 in three reports running is a collapse, raised once", "[unit]") {
  HealthAlarms alarms;
  CHECK(alarms.look(entropy({0.01, 0.02}), 100).empty());
  CHECK(alarms.look(entropy({0.01, 0.02}), 200).empty());
  CHECK(alarms.look(logits({3}), 210).empty());  // a report without entropy does not count
  const auto collapse = alarms.look(entropy({0.01, 0.02}), 300);
  REQUIRE(collapse.size() == 1);
  CHECK(collapse[0].critical);
  CHECK(collapse[0].message == "layer 1: attention has collapsed: relative entropy 0.015 is below 0.05 in 3 reports "
                               "running at step 300");
  CHECK(alarms.look(entropy({0.01, 0.02}), 400).empty());
}

TEST_CASE("one report of healthy entropy starts the count anew", "[unit]") {
  HealthAlarms alarms;
  for (const double value : {0.01, 0.01, 0.4, 0.01, 0.01}) CHECK(alarms.look(entropy({value}), 1).empty());
  CHECK(alarms.look(entropy({0.01}), 1).size() == 1);
}

TEST_CASE("entropy that is not a number raises no collapse", "[unit]") {
  HealthAlarms alarms;
  for (int i = 0; i < 5; ++i) CHECK(alarms.look(entropy({not_a_number, 0.01}), i).empty());
}

TEST_CASE("layers raise their alarms apart", "[unit]") {
  HealthAlarms alarms;
  HealthReport report = logits({2000});
  CHECK(alarms.look(report, 1).size() == 1);
  report.layers[0].logit_bound = {3000};
  const auto second = alarms.look(report, 2);
  REQUIRE(second.size() == 1);
  CHECK(second[0].message.find("layer 0:") == 0);
}
