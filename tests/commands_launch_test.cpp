// `quell launch`: several ranks as one program. What becomes of them when one dies, hangs or is asked to stop, when the launcher dies, and
// that nobody is left behind.
#include <catch2/catch.hpp>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>

#include "base/clock.h"
#include "cases.h"
#include "stop_place.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Cases;
using testing::Child;
using testing::count_of;
using testing::StopPlace;

std::vector<std::string> launching(const std::string& name, const std::vector<std::string>& options = {}, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> words{"launch", "--nproc-per-node", "2"};
  words.insert(words.end(), options.begin(), options.end());
  const std::vector<std::string> training = StopPlace::training(name, overrides);
  words.insert(words.end(), training.begin() + 1, training.end());
  return words;
}

// The ranks, by the order of their start.
std::vector<pid_t> ranks_of(const Child& launcher) {
  std::istringstream children(testing::slurp(cat("/proc/", launcher.pid(), "/task/", launcher.pid(), "/children")));
  std::vector<pid_t> ranks;
  for (pid_t rank; children >> rank;) ranks.push_back(rank);
  return ranks;
}

// Ended, and taken away by whoever is their parent now.
bool are_gone(const std::vector<pid_t>& ranks) {
  return std::all_of(ranks.begin(), ranks.end(), [](pid_t rank) {
    const std::string status = testing::slurp(cat("/proc/", rank, "/status"));
    return status.empty() || status.find("State:\tZ") != std::string::npos;
  });
}

bool says(Child& child, const std::string& text, size_t times = 1) {
  return child.wait_for([&] { return count_of(child.said(), text) >= times; });
}

// A place whose straight run has two ranks.
class LaunchPlace : public testing::RunPlace {
 public:
  LaunchPlace() : RunPlace(testing::decoder_run) {
    REQUIRE(run("launch --nproc-per-node 2 run.yaml").code == 0);
    rows_ = rows("straight");
    weights_ = weights("straight");
  }
  std::string weights(const std::string& name) const { return testing::slurp(*this / ("runs/" + name + "/weights.safetensors")); }
  std::string rows(const std::string& name) const {
    std::istringstream lines(testing::slurp(*this / ("runs/" + name + "/metrics.jsonl")));
    std::string all;
    for (std::string line; std::getline(lines, line);) {
      Json row = parse_json(line, name);
      for (const char* clock : {"time", "tokens_per_s"}) row.erase(clock);
      all += row.dump() + "\n";
    }
    return all;
  }
  void is_the_straight_run(const std::string& name) const {
    CHECK(rows(name) == rows_);
    const bool same = weights(name) == weights_;
    CHECK(same);
    fs::remove_all(*this / ("runs/" + name));
  }
  void ends_as_if_nothing_had_been(const std::string& name) const {
    const testing::Outcome outcome = run(cat("launch --nproc-per-node 2 run.yaml --run runs/", name, " resume=auto"));
    INFO(outcome.err);
    CHECK(outcome.code == 0);
    is_the_straight_run(name);
  }

 private:
  std::string rows_, weights_;
};

}  // namespace

// Kills one rank when the launcher has said so many lines. Whether it hit: else the run had come to its end.
static bool kill_is_named(const LaunchPlace& place, const std::string& name, size_t victim, size_t lines) {
  Child launcher(place.path(), launching(name));
  launcher.wait_for([&] { return count_of(launcher.said(), "\n") >= lines; });
  const std::vector<pid_t> ranks = ranks_of(launcher);
  if (ranks.size() != 2) return false;  // one has ended by itself
  const Timer since;
  ::kill(ranks[victim], SIGKILL);
  if (!says(launcher, "launch: rank ")) {
    INFO(launcher.said());
    REQUIRE(launcher.wait() == 0);  // it had come to its end
    return false;
  }
  CHECK(since.seconds() < 1);
  const int code = launcher.wait();
  CHECK(since.seconds() < 5);
  INFO(launcher.said());
  CHECK(code == 128 + SIGKILL);
  CHECK_THAT(launcher.said(), Catch::Contains(cat("launch: rank ", victim, " on ")) && Catch::Contains(" was killed by signal 9 (KILL), phase "));
  CHECK(are_gone(ranks));
  return true;
}

TEST_CASE("a killed rank is named at once, the others end, and the run goes on exactly", "[multi][D1]") {
  const LaunchPlace place;
  std::mt19937 draw(1);
  for (Cases cases("D1", 8, 24); cases.next();) {
    const std::string name = cat("killed", cases.number());
    const auto victim = static_cast<size_t>(cases.number() % 2);
    CAPTURE(name, victim);
    // From the first line on: joining, building, steps, evaluations, saves, the end.
    while (!kill_is_named(place, name, victim, cases.number() < 2 ? 1 : 10 + draw() % 60)) fs::remove_all(place / ("runs/" + name));
    place.ends_as_if_nothing_had_been(name);
  }
}

TEST_CASE("a stopped rank is found by its silence, told by what the kernel says of it, and all are ended", "[multi][D2]") {
  const LaunchPlace place;
  std::mt19937 draw(2);
  for (Cases cases("D2", 4, 24); cases.next();) {
    const std::string name = cat("stopped", cases.number());
    const auto victim = static_cast<size_t>(cases.number() % 2);
    CAPTURE(name, victim);
    Child launcher(place.path(), launching(name, {"--limit", "2"}));
    const size_t lines = 10 + draw() % 30;
    REQUIRE(launcher.wait_for([&] { return count_of(launcher.said(), "\n") >= lines; }));
    const std::vector<pid_t> ranks = ranks_of(launcher);
    REQUIRE(ranks.size() == 2);
    const Timer since;
    ::kill(ranks[victim], SIGSTOP);
    const int code = launcher.wait();
    CHECK(since.seconds() < 2 + 2);
    INFO(launcher.said());
    CHECK(code == 6);
    CHECK_THAT(launcher.said(), Catch::Contains(cat("launch: rank ", victim, " on ")) && Catch::Contains(" hangs: phase ") && Catch::Contains("T (stopped)"));
    CHECK_THAT(launcher.said(), Catch::Contains("\nat step ") || Catch::Contains(": at step "));  // the other one answers
    CHECK(are_gone(ranks));
    place.ends_as_if_nothing_had_been(name);
  }
}

TEST_CASE("a launcher may start all ranks again, and the run is as if nothing had been", "[multi][D1]") {
  const LaunchPlace place;
  Cases cases("D1");
  for (const size_t victim : {0u, 1u}) {
    const std::string name = cat("again", victim);
    CAPTURE(name);
    Child launcher(place.path(), launching(name, {"--max-restarts", "1"}));
    REQUIRE(says(launcher, "saved "));
    const std::vector<pid_t> ranks = ranks_of(launcher);
    REQUIRE(ranks.size() == 2);
    ::kill(ranks[victim], SIGKILL);
    const int code = launcher.wait();
    INFO(launcher.said());
    CHECK(code == 0);
    CHECK_THAT(launcher.said(), Catch::Contains("launch: start 2 of at most 2, from the newest checkpoint") && Catch::Contains("restart 1"));
    place.is_the_straight_run(name);
    cases.add();
  }
}

TEST_CASE("ranks do not outlive their launcher", "[multi][D1]") {
  const LaunchPlace place;
  Cases cases("D1");
  for (const int kill_with : {SIGKILL, SIGSEGV}) {
    const std::string name = cat("orphans", kill_with);
    Child launcher(place.path(), launching(name));
    REQUIRE(says(launcher, "step 1/"));
    const std::vector<pid_t> ranks = ranks_of(launcher);
    REQUIRE(ranks.size() == 2);
    launcher.signal(kill_with);
    CHECK(launcher.wait() == 128 + kill_with);
    const Timer since;
    while (!are_gone(ranks) && since.seconds() < 30) std::this_thread::yield();
    REQUIRE(are_gone(ranks));
    place.ends_as_if_nothing_had_been(name);
    cases.add();
  }
}

TEST_CASE("a signal to the launcher stops all ranks with a checkpoint, in any phase", "[multi][D8]") {
  const LaunchPlace place;
  const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
  const char* const phases[] = {"step", "evaluation", "save", "generation"};
  Cases cases("D8", 8, 20);
  for (int i = 0; cases.done() < cases.wanted(); ++i) {
    REQUIRE(i < 4 * cases.wanted());  // most are to hit
    const std::string name = cat("signalled", i);
    const char* phase = phases[i % 4];
    CAPTURE(name, phase);
    Child launcher(place.path(), launching(name));
    REQUIRE(says(launcher, "step 1/"));
    testing::reaches(launcher, phase);  // or its end, where it is too quick
    launcher.signal(numbers[i % 5]);
    const int code = launcher.wait();
    INFO(launcher.said());
    REQUIRE((code == 75 || code == 0));
    if (code == 75) cases.add();
    place.ends_as_if_nothing_had_been(name);
  }
}

TEST_CASE("a second signal ends launcher and ranks within a second", "[multi]") {
  const LaunchPlace place;
  Child launcher(place.path(), launching("twice", {}, {"steps=100000"}));
  REQUIRE(says(launcher, "step 1/"));
  const std::vector<pid_t> ranks = ranks_of(launcher);
  launcher.signal(SIGTERM);
  REQUIRE(says(launcher, "stopping as soon as", 2));  // both have it
  const Timer since;
  launcher.signal(SIGTERM);
  CHECK(launcher.wait() != 0);
  CHECK(since.seconds() < 1);
  CHECK(are_gone(ranks));
}

TEST_CASE("STOP in the run's folder ends all ranks with 75, which no restart follows", "[multi]") {
  const LaunchPlace place;
  Child launcher(place.path(), launching("file", {"--max-restarts", "3"}, {"steps=100000"}));
  REQUIRE(says(launcher, "step 1/"));
  std::ofstream(place / "runs/file/STOP") << "";
  CHECK(launcher.wait() == 75);
  CHECK(launcher.said().find("launch:") == std::string::npos);
}

TEST_CASE("STOP is not lost where an evaluation is due after each step", "[multi]") {
  const LaunchPlace place;
  for (const char* program : {"one", "two"}) {
    std::vector<std::string> words = launching(program, {}, {"steps=100000", "evaluate.every=1"});
    if (std::string(program) == "one") words = StopPlace::training(program, {"steps=100000", "evaluate.every=1"});
    Child run(place.path(), words);
    REQUIRE(says(run, "step 2/"));
    std::ofstream(place / cat("runs/", program, "/STOP")) << "";
    CHECK(run.wait() == 75);
  }
}

TEST_CASE("who reads what is said may go away: the ranks still save and end well", "[multi]") {
  const LaunchPlace place;
  const std::string name = "piped";
  // head takes the first lines and is gone; what is said later goes nowhere.
  const testing::Outcome outcome = testing::run_program(place.path(), "launch --nproc-per-node 2 --log-dir logs run.yaml --run runs/piped 2>&1 | head -3");
  CHECK(place.rows(name) == place.rows("straight"));
  const bool same = place.weights(name) == place.weights("straight");
  CHECK(same);
}

TEST_CASE("what the launcher would start can be seen, and a mistake ends it with its code", "[multi]") {
  const LaunchPlace place;
  const testing::Outcome shown = place.run("launch --nproc_per_node=2 --nnodes 2 --node-rank 1 --rdzv-endpoint node7:4000 --dry-run run.yaml steps=5");
  CHECK(shown.code == 0);
  CHECK_THAT(shown.out, Catch::StartsWith("world of 4 ranks, of which 2 here, on node 1 of 2\n") && Catch::Contains("MASTER_ADDR=node7 MASTER_PORT=4000 ") &&
                            Catch::Contains(" RANK=3 ") && Catch::Contains("WORLD_SIZE=4 quell train run.yaml steps=5\n"));
  struct Mistake {
    const char* arguments;
    const char* says;
  };
  for (const Mistake& mistake : {Mistake{"launch", "which run file?"}, {"launch --nproc-per-node 0 run.yaml", "must be a number from 1"},
                                 {"launch --nnodes 2 run.yaml", "--rdzv-endpoint: with several nodes"}, {"launch --node-rank 1 run.yaml", "must be below --nnodes 1"},
                                 {"launch --rdzv-endpoint a:b run.yaml", "must be HOST:PORT"}, {"launch --nproc-per-node 2 nowhere.yaml", "nowhere.yaml: no such file"},
                                 {"launch --nproc-per-node 2 run.yaml", "runs/straight: exists already"}}) {
    CAPTURE(mistake.arguments);
    const testing::Outcome outcome = place.run(mistake.arguments);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(mistake.says));
  }
  // A log for each rank.
  CHECK(place.run("launch --nproc-per-node 2 --log-dir logs run.yaml --run runs/logged").code == 0);
  CHECK_THAT(testing::slurp(place / "logs/rank0.log"), Catch::Contains("finished after step 40"));
  CHECK(fs::exists(place / "logs/rank1.log"));
}

}  // namespace quell
