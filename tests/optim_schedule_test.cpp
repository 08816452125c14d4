// Schedules: against transformers' curves, at their joints and ends, and which settings contradict each other.
#include "checkpoint/safetensors.h"
#include "optim/schedule.h"
#include "support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;

namespace {

std::vector<double> golden(const std::string& name) {
  const at::Tensor curve = SafetensorsFile(QUELL_GOLDEN "/schedules.safetensors").read(name);
  return {curve.const_data_ptr<double>(), curve.const_data_ptr<double>() + curve.numel()};
}

constexpr ScheduleKind all_kinds[] = {ScheduleKind::constant, ScheduleKind::cosine, ScheduleKind::linear,
                                      ScheduleKind::wsd, ScheduleKind::inverse_sqrt};

std::vector<std::string> problems_of(const ScheduleConfig& config) {
  Problems problems;
  check(problems, config);
  std::vector<std::string> found;
  for (const auto& [key, message, fix] : problems.all()) found.push_back(key + ": " + message + " | " + fix);
  return found;
}

}  // namespace

TEST_CASE("schedules equal transformers' curves after a warm-up of 10 of 100 steps", "[unit]") {
  struct Case {
    const char* name;
    ScheduleConfig config;
  };
  const Case cases[] = {
      {"constant", {.kind = ScheduleKind::constant, .warmup = 10}},
      {"cosine", {.kind = ScheduleKind::cosine, .warmup = 10, .final = 0}},
      {"cosine_final", {.kind = ScheduleKind::cosine, .warmup = 10, .final = 0.1}},
      {"linear", {.kind = ScheduleKind::linear, .warmup = 10, .final = 0}},
      {"wsd_linear", {.kind = ScheduleKind::wsd, .warmup = 10, .final = 0, .decay_steps = 30}},
      {"wsd_linear_final", {.kind = ScheduleKind::wsd, .warmup = 10, .final = 0.1, .decay_steps = 30}},
      {"inverse_sqrt", {.kind = ScheduleKind::inverse_sqrt, .warmup = 10, .final = 0}}};
  for (const Case& each : cases) {
    const std::vector<double> curve = golden(each.name);
    REQUIRE(curve.size() == 100);
    for (int64_t step = 10; step < 100; ++step) {
      INFO(each.name << " at step " << step);
      CHECK(std::abs(schedule_factor(each.config, step, 100) - curve[static_cast<size_t>(step)]) <= 1e-12);
    }
  }
}

TEST_CASE("the warm-up is transformers' line one step earlier, since its first update is at rate 0", "[unit]") {
  const std::vector<double> curve = golden("cosine");
  const ScheduleConfig config{.kind = ScheduleKind::cosine, .warmup = 10, .final = 0};
  for (int64_t step = 0; step < 10; ++step) {
    CHECK(std::abs(schedule_factor(config, step, 100) - curve[static_cast<size_t>(step + 1)]) <= 1e-12);
  }
}

TEST_CASE("every schedule grows to 1 at the end of the warm-up and continues from there", "[unit]") {
  for (const ScheduleKind kind : all_kinds) {
    for (const int64_t warmup : {0, 1, 2, 500}) {
      const ScheduleConfig config{.kind = kind, .warmup = warmup};
      INFO(name_of(kind) << ", warm-up " << warmup);
      if (warmup > 0) {
        CHECK(schedule_factor(config, 0, 10'000) == 1.0 / static_cast<double>(warmup));
        CHECK(schedule_factor(config, warmup - 1, 10'000) == 1);
      }
      CHECK(schedule_factor(config, warmup, 10'000) == 1);
    }
  }
}

TEST_CASE("no schedule jumps, and after the warm-up none rises", "[unit]") {
  for (const ScheduleKind kind : all_kinds) {
    const ScheduleConfig config{.kind = kind, .warmup = 1000, .final = 0.2};
    for (int64_t step = 1; step < 30'000; ++step) {
      const double before = schedule_factor(config, step - 1, 20'000), now = schedule_factor(config, step, 20'000);
      // The steepest are the warm-up (1/1000 a step) and the last tenth of wsd (0.8/2000 a step).
      if (std::abs(now - before) > 1.001e-3 || (step >= 1000 && now > before) || now < 0 || now > 1) {
        FAIL(name_of(kind) << " goes from " << before << " to " << now << " at step " << step);
      }
    }
  }
}

TEST_CASE("a decaying schedule ends at final and stays there", "[unit]") {
  for (const ScheduleKind kind : {ScheduleKind::cosine, ScheduleKind::linear, ScheduleKind::wsd}) {
    const ScheduleConfig config{.kind = kind, .warmup = 10, .final = 0.25};
    CHECK(schedule_factor(config, 99, 100) > 0.25);
    for (const int64_t step : {100, 101, 1'000'000}) CHECK(schedule_factor(config, step, 100) == 0.25);
  }
  const ScheduleConfig constant{.kind = ScheduleKind::constant, .final = 0.25};
  CHECK(schedule_factor(constant, 1'000'000, 100) == 1);
  const ScheduleConfig root{.kind = ScheduleKind::inverse_sqrt, .warmup = 100, .final = 0.25};
  CHECK(schedule_factor(root, 1599, 100) > 0.25);
  for (const int64_t step : {1600, 1'000'000'000}) CHECK(schedule_factor(root, step, 100) == 0.25);
}

TEST_CASE("steps of the schedule come before the run's plan, and decay_steps default to a tenth", "[unit]") {
  ScheduleConfig config{.kind = ScheduleKind::wsd, .final = 0};
  config.steps = 50;
  CHECK(schedule_factor(config, 45, 1000) == 1);
  CHECK(schedule_factor(config, 46, 1000) == 0.8);
  CHECK(schedule_factor(config, 50, 1000) == 0);
  config.steps.reset();
  CHECK(schedule_factor(config, 900, 1000) == 1);
  CHECK(schedule_factor(config, 950, 1000) == 0.5);
}

TEST_CASE("a run shorter than its warm-up or its decay is scheduled all the same", "[unit]") {
  for (const ScheduleKind kind : all_kinds) {
    ScheduleConfig config{.kind = kind, .warmup = 100};
    CHECK(schedule_factor(config, 0, 2) == 0.01);
    CHECK(schedule_factor(config, 1, 2) == 0.02);
  }
  const ScheduleConfig wsd{.kind = ScheduleKind::wsd, .warmup = 10, .final = 0, .decay_steps = 1000};
  CHECK(schedule_factor(wsd, 10, 20) == 1);
  CHECK(schedule_factor(wsd, 15, 20) == 0.5);
  CHECK(schedule_factor({.kind = ScheduleKind::wsd, .final = 0}, 0, 1) == 1);
}

TEST_CASE("schedule settings that contradict each other are problems with a fix", "[unit]") {
  using Found = std::vector<std::string>;
  CHECK(problems_of({}) == Found{});
  CHECK(problems_of({.kind = ScheduleKind::wsd, .warmup = 10, .steps = 100, .decay_steps = 90}) == Found{});
  CHECK(problems_of({.kind = ScheduleKind::cosine, .decay_steps = 5}) ==
        Found{"decay_steps: kind cosine has no final decay of its own length | leave it out, or set kind: wsd"});
  CHECK(problems_of({.kind = ScheduleKind::constant, .steps = 5}) ==
        Found{"steps: kind constant has no end | leave it out, or set kind: cosine, linear or wsd"});
  CHECK(problems_of({.kind = ScheduleKind::inverse_sqrt, .steps = 5}).size() == 1);
  CHECK(problems_of({.kind = ScheduleKind::linear, .warmup = 100, .steps = 100}) ==
        Found{"warmup: 100 is not below steps 100 | at most 99, so that something is left to decay over"});
  CHECK(problems_of({.kind = ScheduleKind::wsd, .warmup = 10, .steps = 100, .decay_steps = 91}) ==
        Found{"decay_steps: 91 and warmup 10 exceed steps 100 | at most 90"});
}
