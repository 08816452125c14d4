// A run that is stopped, in whatever phase and by whatever signal, or killed, goes on with --resume as if nothing had been: the same
// rows of metrics and the same bits of every weight.
#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "child.h"
#include "run_place.h"

namespace quell {
namespace {

using testing::Child;
using testing::Outcome;
using testing::slurp;

// A run file of 40 steps; the straight run lies in runs/straight.
class Place : public testing::RunPlace {
 public:
  Place()
      : RunPlace("name: straight\nsteps: 40\nthreads: 1\nmodel: {context: 32, width: 32, layers: 2, heads: 2, mlp: {width: 64}}\n"
                 "data: {kind: tokens, train: text/train, batch: 8}\noptimizer: {schedule: {warmup: 5}}\nmicro_batches: 2\nema: 0.9\n"
                 "evaluate: {sets: [{name: valid, data: text/valid}], every: 8, batches: all, sample: 20}\nreport: {every: 1}\n"
                 "checkpoint: {every: 5}\n") {
    REQUIRE(run("train run.yaml").code == 0);
    rows_ = rows("straight");
    weights_ = slurp(*this / "runs/straight/weights.safetensors");
  }

  static std::vector<std::string> training(const std::string& name, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"train", "run.yaml", "--run", "runs/" + name, "resume=auto"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // The run's rows without the clock.
  std::string rows(const std::string& name) const {
    std::istringstream lines(slurp(*this / ("runs/" + name + "/metrics.jsonl")));
    std::string all;
    for (std::string line; std::getline(lines, line);) {
      Json row = parse_json(line, name);
      for (const char* clock : {"time", "tokens_per_s"}) row.erase(clock);
      all += row.dump() + "\n";
    }
    return all;
  }

  // That the run can be gone on with until its end and is then the straight one.
  void ends_as_if_nothing_had_been(const std::string& name) const {
    const Outcome outcome = run(cat("train run.yaml --run runs/", name, " resume=auto"));
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    CHECK(rows(name) == rows_);
    // Not a comparison of texts, which would print them.
    const bool same = slurp(*this / ("runs/" + name + "/weights.safetensors")) == weights_;
    CHECK(same);
    for (const std::string& entry : files::list(*this / ("runs/" + name + "/checkpoints"))) CHECK_FALSE(entry.starts_with("."));
  }

 private:
  std::string rows_, weights_;
};

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

bool has_begun(const Place& place, const std::string& name) { return files::exists(place / ("runs/" + name + "/log.txt")); }

// Asks by SIGQUIT until the program says that it is in `phase`.
bool reaches(Child& child, const std::string& phase) {
  return child.wait_for([&] {
    child.signal(SIGQUIT);
    return child.said().find(", " + phase + "\n") != std::string::npos;
  });
}

}  // namespace

TEST_CASE("any of five signals in any phase ends a run with 75 and a checkpoint, and it goes on exactly", "[unit]") {
  const Place place;
  const std::vector<int> numbers{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
  const std::vector<std::string> phases{"start", "step", "evaluation", "save"};
  for (size_t i = 0; i < numbers.size() * phases.size(); ++i) {
    const int number = numbers[i % numbers.size()];
    const std::string& phase = phases[i % phases.size()];  // every pair: 5 and 4 have no common divisor
    const std::string name = cat("stopped", i);
    CAPTURE(number, phase);
    Child child(place.path(), Place::training(name));
    const bool reached = phase == "start" ? child.wait_for([&] { return child.said().find("device ") != std::string::npos; })
                                          : child.wait_for([&] { return has_begun(place, name); }) && reaches(child, phase);
    CHECK(reached);
    child.signal(number);
    const int code = child.wait();
    INFO(child.said());
    const bool was_ending = child.said().find("finished after step 40") != std::string::npos;  // in its last save
    CHECK(code == (was_ending ? 0 : 75));
    CHECK(was_ending != (child.said().find("run again with --resume to go on") != std::string::npos));
    place.ends_as_if_nothing_had_been(name);
  }
}

TEST_CASE("a second signal ends the run at once, in the middle of a step", "[unit]") {
  const Place place;
  // A step of some 10^12 operations, which no first signal can end.
  Child child(place.path(), Place::training("twice", {"evaluate.sets=[]", "data.batch=1024", "model.width=512", "model.layers=4", "model.mlp.width=2048"}));
  REQUIRE(child.wait_for([&] { return has_begun(place, "twice"); }));
  REQUIRE(reaches(child, "step"));
  child.signal(SIGTERM);
  REQUIRE(child.wait_for([&] { return child.said().find("again to quit at once") != std::string::npos; }));
  const auto begin = std::chrono::steady_clock::now();
  child.signal(SIGINT);
  CHECK(child.wait() == 128 + SIGINT);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(1));
}

TEST_CASE("the files SAVE and STOP do without a signal, and stop_code is what the run then ends with", "[unit]") {
  const Place place;
  Child child(place.path(), Place::training("files", {"steps=1000000", "checkpoint.every=0", "stop_code=9", "optimizer.schedule.steps=40"}));
  REQUIRE(child.wait_for([&] { return has_begun(place, "files"); }));
  const std::string folder = place / "runs/files/";
  std::ofstream(folder + "SAVE") << "";
  REQUIRE(child.wait_for([&] { return files::is_folder(folder + "checkpoints") && !files::exists(folder + "SAVE") && child.said().find("saved ") != std::string::npos; }));
  std::ofstream(folder + "STOP") << "";
  CHECK(child.wait() == 9);
  CHECK_FALSE(files::exists(folder + "STOP"));
  CHECK(count_of(child.said(), "saved ") == 2);
}

TEST_CASE("time stops a run in time, with a checkpoint and the code of a run that is to go on", "[unit]") {
  const Place place;
  const auto begin = std::chrono::steady_clock::now();
  const Outcome outcome = place.run("train run.yaml --run runs/timed steps=1000000 optimizer.schedule.steps=40 time=2s");
  CHECK(outcome.code == 75);
  CHECK_THAT(outcome.err, Catch::Contains("time is up after step"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(place.run("train run.yaml --run runs/timed steps=1000000 optimizer.schedule.steps=40 time=1s --resume").code == 75);
}

TEST_CASE("SIGKILL at random times loses no more than what was not saved", "[unit]") {
  const Place place;
  std::mt19937 draw(1);
  for (int i = 0; i < 15; ++i) {
    const std::string name = cat("killed", i);
    const int chain = i < 3 ? 4 : 1;  // some are killed again and again
    for (int kill = 0; kill < chain; ++kill) {
      Child child(place.path(), Place::training(name));
      // So many lines of the log from now on, in which steps, evaluations and saves come as they do.
      const size_t lines = 9 + draw() % 60;
      child.wait_for([&] { return count_of(child.said(), "\n") >= lines; });
      child.signal(SIGKILL);
      child.wait();
    }
    CAPTURE(i);
    place.ends_as_if_nothing_had_been(name);
  }
}

TEST_CASE("--accept and --set take one word, and leave the overrides behind them", "[unit]") {
  const Place place;
  const Outcome fresh = place.run("train run.yaml --run runs/one --accept steps");
  CHECK(fresh.code == 2);
  CHECK_THAT(fresh.err, Catch::Contains("--accept steps: this run goes on from nothing"));
  REQUIRE(place.run("train run.yaml --run runs/one").code == 0);
  const Outcome outcome = place.run("train run.yaml --run runs/one --resume --accept steps steps=44 --set ema=0.9 report.every=2");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("changed     steps: 40 -> 44") && Catch::Contains("changed     report.every: 1 -> 2") && Catch::Contains("finished after step 44"));
  CHECK(files::exists(place / "runs/one/config.until_40.yaml"));
}

TEST_CASE("a second process is kept out of a run's folder, and the next one is told of a killed one", "[unit]") {
  const Place place;
  Child child(place.path(), Place::training("one", {"evaluate.sample=1000000"}));
  REQUIRE(child.wait_for([&] { return has_begun(place, "one"); }));
  const Outcome second = place.run("train run.yaml --run runs/one --resume");
  CHECK(second.code == 7);
  CHECK_THAT(second.err, Catch::Contains("is working in it"));
  child.signal(SIGKILL);
  child.wait();
  const Outcome third = place.run("train run.yaml --run runs/one resume=auto");
  CHECK(third.code == 0);
  CHECK_THAT(third.err, Catch::Contains("which was killed: it works here no more"));
}

}  // namespace quell
