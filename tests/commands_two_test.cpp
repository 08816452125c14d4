// Two processes and one run's folder: one works, the other is told who does, and nothing is lost.
#include <catch2/catch.hpp>

#include <csignal>
#include <filesystem>

#include "cases.h"
#include "stop_place.h"

namespace quell {
namespace {

using testing::Cases;
using testing::Child;
using testing::Outcome;
using testing::StopPlace;

// Held in the middle of its work, which then takes as long as it is held.
class Held {
 public:
  explicit Held(const StopPlace& place) : child_(place.path(), StopPlace::training("one")) {
    REQUIRE(child_.wait_for([&] { return files::exists(place / "runs/one/metrics.jsonl"); }));
    REQUIRE(child_.hold());
  }
  void kill() {
    child_.signal(SIGKILL);
    child_.wait();
  }
  int go_on() {
    child_.go_on();
    return child_.wait();
  }

 private:
  Child child_;
};

void resume_is_refused(const StopPlace& place) {
  Held first(place);
  const Outcome second = place.run("train run.yaml --run runs/one --resume");
  CHECK(second.code == 7);
  CHECK_THAT(second.err, Catch::Contains("runs/one: process ") && Catch::Contains(" is working in it"));
  CHECK(first.go_on() == 0);
}

void killed_one_is_taken_over_from(const StopPlace& place) {
  Held first(place);
  first.kill();
  const Outcome second = place.run("train run.yaml --run runs/one resume=auto");
  CHECK(second.code == 0);
  CHECK_THAT(second.err, Catch::Contains("lock        taken over from process ") && Catch::Contains("which was killed: it works here no more"));
}

void new_run_is_refused(const StopPlace& place) {
  Held first(place);
  const Outcome second = place.run("train run.yaml --run runs/one");
  CHECK(second.code == 2);
  CHECK_THAT(second.err, Catch::Contains("runs/one: exists already"));
  CHECK(first.go_on() == 0);
}

void pruning_is_refused(const StopPlace& place) {
  Held first(place);
  CHECK(place.run("checkpoint prune runs/one").code == 7);
  CHECK(first.go_on() == 0);
}

void reading_is_not(const StopPlace& place) {
  REQUIRE(place.run("train run.yaml --run runs/one").code == 0);
  std::filesystem::remove_all(place / "runs/one/checkpoints/step-00000040");
  Child first(place.path(), StopPlace::training("one"));
  REQUIRE(first.wait_for([&] { return first.said().find("resumed ") != std::string::npos; }));
  REQUIRE(first.hold());
  CHECK(place.run("checkpoint ls runs/one").code == 0);
  CHECK(place.run("checkpoint verify runs/one").code == 0);
  CHECK(place.run("eval runs/one").code == 0);
  first.go_on();
  CHECK(first.wait() == 0);
}

// Both at once: whoever is first works, the other is told, whatever it finds.
void one_of_two_works(const StopPlace& place) {
  Outcome other;
  Child first(place.path(), StopPlace::training("one"));
  other = place.run("train run.yaml --run runs/one resume=auto");
  const int code = first.wait();
  CAPTURE(code, other.code, first.said(), other.err);
  // Either at the same time, or one after the other, which then finds a finished run.
  CHECK((code == 0 || other.code == 0));
  for (const int each : {code, other.code}) CHECK((each == 0 || each == 7 || each == 2));  // 2: the folder appeared meanwhile
}

void one_of_two_takes_over(const StopPlace& place) {
  Held killed(place);
  killed.kill();
  one_of_two_works(place);
}

void another_name_is_no_way_in(const StopPlace& place) {
  Held first(place);
  std::filesystem::create_directory_symlink("runs", place / "linked");
  const Outcome second = place.run("train run.yaml --run linked/../linked/one --resume");
  CHECK(second.code == 7);
  CHECK_THAT(second.err, Catch::Contains(" is working in it"));
  CHECK(first.go_on() == 0);
}

}  // namespace

TEST_CASE("of two processes one works in a run's folder, the other ends and says why, and the run is as if it had been alone", "[slow][K9]") {
  void (*const themes[])(const StopPlace&) = {resume_is_refused, killed_one_is_taken_over_from, new_run_is_refused, pruning_is_refused,
                                              reading_is_not, one_of_two_works, one_of_two_takes_over, another_name_is_no_way_in};
  const StopPlace place;
  for (Cases cases("K9", 2, 8); cases.next();) {
    CAPTURE(cases.number());
    themes[cases.number()](place);
    place.ends_as_if_nothing_had_been("one");
    std::filesystem::remove_all(place / "runs/one");
  }
}

}  // namespace quell
