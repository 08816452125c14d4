// A run that is killed, at any time and at any system call of a save, goes on by itself as if nothing had been.
#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <random>

#include "cases.h"
#include "checkpoint/commit.h"
#include "checkpoint/folder.h"
#include "stop_place.h"
#include "traced.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Cases;
using testing::Child;
using testing::count_of;
using testing::StopPlace;
using testing::Traced;

// So many lines of the log from its start on, in which steps, evaluations and saves come as they do. False where it had ended.
bool kill_after(const StopPlace& place, const std::string& name, size_t lines) {
  Child child(place.path(), StopPlace::training(name));
  child.wait_for([&] { return count_of(child.said(), "\n") >= lines; });
  child.signal(SIGKILL);
  const int code = child.wait();
  INFO(child.said());
  REQUIRE((code == 0 || code == 128 + SIGKILL));
  return code != 0;
}

}  // namespace

TEST_CASE("SIGKILL at random times loses no more than what was not saved", "[slow][K1]") {
  const StopPlace places[] = {StopPlace(testing::decoder_run), StopPlace(testing::vision_run)};
  std::mt19937 draw(1);
  for (Cases cases("K1", 15, 500); cases.next();) {
    const StopPlace& place = places[cases.number() % 2];
    const std::string name = cat("killed", cases.number());
    CAPTURE(name);
    while (!kill_after(place, name, 9 + draw() % 60)) fs::remove_all(place / ("runs/" + name));  // only a kill that hits is a case
    place.ends_as_if_nothing_had_been(name);
    fs::remove_all(place / ("runs/" + name));
  }
}

TEST_CASE("a run that is killed ten times in a row ends as if nothing had been", "[slow][R4]") {
  const StopPlace places[] = {StopPlace(testing::decoder_run), StopPlace(testing::vision_run)};
  std::mt19937 draw(2);
  for (Cases cases("R4", 2, 50); cases.next();) {
    const StopPlace& place = places[cases.number() % 2];
    const std::string name = cat("chain", cases.number());
    CAPTURE(name);
    // At the n-th line of the metrics that this start writes, or a save that comes before it: each kill hits, and a few steps are
    // behind it. What was not saved is made again, so that ten kills need not reach the end of 40 steps.
    for (int kill = 0; kill < 10; ++kill) {
      const Traced::Outcome killed = Traced::run(place.path(), StopPlace::training(name), "/metrics.jsonl", static_cast<int>(2 + draw() % 6));
      INFO(testing::slurp(place / "traced.txt"));
      CHECK(killed.code == 128 + SIGKILL);
    }
    place.ends_as_if_nothing_had_been(name);
    fs::remove_all(place / ("runs/" + name));
  }
}

TEST_CASE("SIGKILL at every system call of a save and of what it removes leaves a run that goes on by itself", "[slow][K2]") {
  const StopPlace place;
  // From step 35 on: five steps, one save, by which the older of two goes.
  REQUIRE(place.run("train run.yaml --run runs/base checkpoint.keep_last=3").code == 0);
  fs::remove_all(cat(place / "runs/base/checkpoints/", checkpoint_name(40)));
  REQUIRE(list_checkpoints(place / "runs/base/checkpoints").size() == 2);
  const auto traced = [&](const std::string& name, int at) {
    fs::copy(place / "runs/base", place / ("runs/" + name), fs::copy_options::recursive);
    return Traced::run(place.path(), StopPlace::training(name), "/checkpoints", at);
  };
  const Traced::Outcome whole = traced("whole", INT_MAX);
  REQUIRE(whole.code == 0);
  std::map<std::string, int> calls;
  for (const std::string& name : whole.names) ++calls[name];
  for (const char* name : {"openat", "write", "fsync"}) CHECK(calls[name] > 0);
  CHECK(calls["renameat2"] + calls["rename"] == 2);  // into its name, and the older one out of its
  // What comes before is the reading of what the run goes on from.
  const auto begin = std::find_if(whole.names.begin(), whole.names.end(), [](const std::string& name) { return name.starts_with("mkdir"); });
  REQUIRE(begin != whole.names.end());
  const int first = static_cast<int>(begin - whole.names.begin());
  Cases cases("K2");
  for (int at = first; at < whole.calls; at += testing::in_full() ? 1 : 3, cases.add()) {
    const std::string name = cat("killed", at);
    CAPTURE(at, whole.names[static_cast<size_t>(at)]);
    CHECK(traced(name, at).code == 128 + SIGKILL);
    place.ends_as_if_nothing_had_been(name);
    fs::remove_all(place / ("runs/" + name));
  }
  CHECK(cases.done() > (testing::in_full() ? 60 : 20));
}

}  // namespace quell
