// A run that is stopped, in whatever phase and by whatever signal, goes on with --resume as if nothing had been: the same rows of
// metrics and the same bits of every weight. Kills are in commands_kill_test.cpp.
#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>

#include "cases.h"
#include "stop_place.h"

namespace quell {
namespace {

using testing::Cases;
using testing::Child;
using testing::count_of;
using testing::Outcome;
using testing::reaches;
using testing::StopPlace;

struct Kind {
  const StopPlace place;
  const std::vector<std::string> phases;
};

}  // namespace

TEST_CASE("any of five signals in any phase ends a run with 75 and a checkpoint, and it goes on exactly", "[slow][D8]") {
  const std::vector<int> numbers{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
  const Kind kinds[] = {{StopPlace(testing::decoder_run), {"start", "step", "evaluation", "save", "generation"}},
                        {StopPlace(testing::vision_run), {"start", "step", "evaluation", "save", "data wait"}}};
  for (Cases cases("D8", 20, 50); cases.next();) {
    const auto& [place, phases] = kinds[cases.number() % 2];
    const size_t pair = static_cast<size_t>(cases.number()) / 2;
    const int number = numbers[pair % numbers.size()];
    const std::string& phase = phases[(pair + pair / phases.size()) % phases.size()];  // 25 in turn are all pairs
    const std::string name = cat("stopped", cases.number());
    CAPTURE(number, phase);
    Child child(place.path(), StopPlace::training(name));
    const bool reached = phase == "start" ? child.wait_for([&] { return child.said().find("device ") != std::string::npos; })
                                          : child.wait_for([&] { return place.has_begun(name); }) && reaches(child, phase);
    CHECK(reached);
    child.signal(number);
    const int code = child.wait();
    INFO(child.said());
    const bool was_ending = child.said().find("finished after step 40") != std::string::npos;  // in its last save
    CHECK(code == (was_ending ? 0 : 75));
    CHECK((!was_ending || phase == "save"));
    CHECK(was_ending != (child.said().find("run again with --resume to go on") != std::string::npos));
    place.ends_as_if_nothing_had_been(name);
  }
}

TEST_CASE("a second signal ends the run within a second, in the middle of a step", "[slow][D8]") {
  const StopPlace place;
  const std::vector<int> numbers{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
  for (Cases cases("D8", 1, 10); cases.next();) {
    const size_t i = static_cast<size_t>(cases.number());
    const int first = numbers[i % 5], then = numbers[(i + 1 + i / 5) % 5];
    const std::string name = cat("twice", i);
    // A step of some 10^12 operations, which no first signal can end.
    Child child(place.path(), StopPlace::training(name, {"evaluate.sets=[]", "data.batch=1024", "model.width=512", "model.layers=4", "model.mlp.width=2048"}));
    REQUIRE(child.wait_for([&] { return place.has_begun(name); }));
    REQUIRE(reaches(child, "step"));
    child.signal(first);
    REQUIRE(child.wait_for([&] { return child.said().find("again to quit at once") != std::string::npos; }));
    const auto begin = std::chrono::steady_clock::now();
    child.signal(then);
    CHECK(child.wait() == 128 + then);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
  }
}

TEST_CASE("the files SAVE and STOP do without a signal, and stop_code is what the run then ends with", "[unit]") {
  const StopPlace place;
  Child child(place.path(), StopPlace::training("files", {"steps=1000000", "checkpoint.every=0", "stop_code=9", "optimizer.schedule.steps=40"}));
  REQUIRE(child.wait_for([&] { return place.has_begun("files"); }));
  const std::string folder = place / "runs/files/";
  std::ofstream(folder + "SAVE") << "";
  REQUIRE(child.wait_for([&] { return files::is_folder(folder + "checkpoints") && !files::exists(folder + "SAVE") && child.said().find("saved ") != std::string::npos; }));
  std::ofstream(folder + "STOP") << "";
  CHECK(child.wait() == 9);
  CHECK_FALSE(files::exists(folder + "STOP"));
  CHECK(count_of(child.said(), "saved ") == 2);
}

TEST_CASE("time stops a run in time, with a checkpoint and the code of a run that is to go on", "[unit]") {
  const StopPlace place;
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = place.run("train run.yaml --run runs/timed steps=1000000 optimizer.schedule.steps=40 time=2s");
  CHECK(outcome.code == 75);
  CHECK_THAT(outcome.err, Catch::Contains("time is up after step"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(place.run("train run.yaml --run runs/timed steps=1000000 optimizer.schedule.steps=40 time=1s --resume").code == 75);
}

TEST_CASE("a stop while data are looked through ends a run that had not begun, with stop_code", "[unit]") {
  const StopPlace place;
  std::ofstream(place / "large.bin") << "";
  std::filesystem::resize_file(place / "large.bin", uint64_t{4} << 30);  // without a block on the disk
  Child child(place.path(), StopPlace::training("never", {"data.train=large.bin", "data.type=uint16", "evaluate.sets=[]", "stop_code=9"}));
  REQUIRE(child.wait_for([&] { return child.said().find("reading large.bin once: ") != std::string::npos; }));
  child.signal(SIGTERM);
  CHECK(child.wait() == 9);
  CHECK_THAT(child.said(), Catch::Contains("nothing was begun"));
  CHECK_FALSE(files::exists(place / "runs/never"));
}

TEST_CASE("--accept and --set take one word, and leave the overrides behind them", "[unit]") {
  const StopPlace place;
  const Outcome fresh = place.run("train run.yaml --run runs/one --accept steps");
  CHECK(fresh.code == 2);
  CHECK_THAT(fresh.err, Catch::Contains("--accept steps: this run goes on from nothing"));
  REQUIRE(place.run("train run.yaml --run runs/one").code == 0);
  REQUIRE(place.run("train run.yaml --run runs/one --resume").code == 0);
  CHECK_FALSE(files::exists(place / "runs/one/config.until_40.yaml"));  // nothing but how it was started is another
  const Outcome outcome = place.run("train run.yaml --run runs/one --resume --accept steps steps=44 --set ema=0.9 report.every=2");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("changed     steps: 40 -> 44") && Catch::Contains("changed     report.every: 1 -> 2") && Catch::Contains("finished after step 44"));
  CHECK(files::exists(place / "runs/one/config.until_40.yaml"));
}

}  // namespace quell
