// The program in several ranks: exact resume, other numbers of ranks, a stop that one of them is asked for, ranks that die, and mistakes
// that only one of them can see.
#include <catch2/catch.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "cases.h"
#include "checkpoint/commit.h"
#include "checkpoint/folder.h"
#include "ranks.h"
#include "stop_place.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Cases;
using testing::Ranks;
using Codes = std::vector<int>;

// 12 steps with a checkpoint after each.
const char* const decoder_ranks =
    "name: straight\nsteps: 12\nthreads: 1\nmodel: {context: 32, width: 36, layers: 2, heads: 3, mlp: {width: 50}, dropout: 0.1}\n"
    "data: {kind: tokens, train: text/train, batch: 8}\noptimizer: {schedule: {warmup: 5}}\nema: 0.9\n"
    "evaluate: {sets: [{name: valid, data: text/valid}], every: 4, batches: all, sample: 20}\nreport: {every: 1}\n"
    "checkpoint: {every: 1, keep_last: 100, verify: sizes}\n";

class Place : public testing::RunPlace {
 public:
  Place() : RunPlace(decoder_ranks) {}

  Codes run(int ranks, const std::string& name, const std::vector<std::string>& more = {}) const {
    Ranks world(ranks, QUELL_PROGRAM, words(name, more), {}, path());
    const Codes codes = world.wait();
    said_ = world.said();
    return codes;
  }
  static std::vector<std::string> words(const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> all{"train", "run.yaml", "--run", "runs/" + name, "resume=auto"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  const std::string& said() const { return said_; }

  // Another run that is where `name` was after `step`.
  void copy_until(const std::string& name, int64_t step, const std::string& copy) const {
    fs::copy(folder(name), folder(copy), fs::copy_options::recursive);
    for (const Entry& entry : list_checkpoints(folder(copy) + "/checkpoints")) {
      if (entry.step > step) fs::remove_all(entry.path);
    }
    fs::remove(folder(copy) + "/weights.safetensors");
  }
  std::string folder(const std::string& name) const { return *this / ("runs/" + name); }
  std::vector<Json> rows(const std::string& name) const {
    std::vector<Json> all;
    std::istringstream lines(testing::slurp(folder(name) + "/metrics.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      all.push_back(parse_json(line, name));
      for (const char* clock : {"time", "tokens_per_s"}) all.back().erase(clock);
    }
    return all;
  }
  std::string weights(const std::string& name) const { return testing::slurp(folder(name) + "/weights.safetensors"); }

 private:
  mutable std::string said_;
};

Codes all(int ranks, int code) { return Codes(static_cast<size_t>(ranks), code); }

}  // namespace

TEST_CASE("ranks resume exactly, from any step", "[multi][R2]") {
  const Place place;
  Cases cases("R2");
  for (const int ranks : {2, 4}) {
    const std::string straight = cat("straight", ranks);
    REQUIRE(place.run(ranks, straight) == all(ranks, 0));
    for (int64_t step = 1; step < 12; step += testing::in_full() ? 1 : 3, cases.add()) {
      const std::string again = cat("again", ranks, "_", step);
      CAPTURE(again);
      place.copy_until(straight, step, again);
      CHECK(place.run(ranks, again) == all(ranks, 0));
      CHECK(place.rows(again) == place.rows(straight));
      const bool same = place.weights(again) == place.weights(straight);
      CHECK(same);
      fs::remove_all(place.folder(again));
    }
  }
}

TEST_CASE("a run may go on with another number of ranks: the same samples, and the same loss but for rounding", "[multi][R5]") {
  const Place place;
  REQUIRE(place.run(1, "one") == Codes{0});
  const std::vector<Json> expected = place.rows("one");
  const std::vector<std::vector<int>> chains{{1, 2, 4, 2, 1}, {4, 1, 2}, {2, 4}, {4, 2}, {1, 4}, {2, 1}};
  for (Cases cases("R5", 6, 6); cases.next();) {
    const std::vector<int>& chain = chains[static_cast<size_t>(cases.number())];
    int64_t step = 0;
    for (const int ranks : chain) {
      const bool is_last = &ranks == &chain.back();
      step += 2;
      CAPTURE(cases.number(), ranks, step);
      // What is behind `step` is taken away, as if the run had been killed there.
      CHECK(place.run(ranks, "chain") == all(ranks, 0));
      if (is_last) continue;
      place.copy_until("chain", step, "shorter");
      fs::remove_all(place.folder("chain"));
      fs::rename(place.folder("shorter"), place.folder("chain"));
    }
    const std::vector<Json> found = place.rows("chain");
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i]["step"] == expected[i]["step"]);
      if (found[i].contains("tokens")) CHECK(found[i]["tokens"] == expected[i]["tokens"]);
      for (const char* loss : {"loss", "valid.loss"}) {
        if (expected[i].contains(loss)) CHECK(found[i][loss].get<double>() == Approx(expected[i][loss].get<double>()).epsilon(1e-5));
      }
    }
    fs::remove_all(place.folder("chain"));
  }
}

TEST_CASE("a signal to one rank stops all after the same step, and the run goes on exactly", "[multi][D8]") {
  const Place place;
  const std::vector<std::string> longer{"steps=60"};
  REQUIRE(place.run(2, "straight", longer) == all(2, 0));
  Cases cases("D8", 6, 20);
  for (int i = 0; i < cases.wanted(); ++i, cases.add()) {
    const int number = std::array{SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}[static_cast<size_t>(i % 5)], to = i % 2;
    const std::string name = cat("stopped", i);
    CAPTURE(name, number, to);
    Ranks ranks(2, QUELL_PROGRAM, Place::words(name, longer), {}, place.path());
    const size_t rows = static_cast<size_t>(1 + 3 * i);
    REQUIRE(ranks.wait_for([&] { return testing::count_of(testing::slurp(place.folder(name) + "/metrics.jsonl"), "\n") >= rows; }));
    ranks.signal(to, number);
    const Codes codes = ranks.wait();
    INFO(ranks.said());
    CHECK(codes == all(2, 75));
    CHECK(place.run(2, name, longer) == all(2, 0));
    CHECK(place.rows(name) == place.rows("straight"));
    const bool same = place.weights(name) == place.weights("straight");
    CHECK(same);
    fs::remove_all(place.folder(name));
  }
}

TEST_CASE("where a rank is killed the others end at once and say that a peer was lost, and the run goes on", "[multi]") {
  const Place place;
  for (const int killed : {0, 1}) {
    const std::string name = cat("killed", killed);
    CAPTURE(name);
    Ranks ranks(2, QUELL_PROGRAM, Place::words(name, {"steps=2000"}), {}, place.path());
    REQUIRE(ranks.wait_for([&] { return testing::count_of(testing::slurp(place.folder(name) + "/metrics.jsonl"), "\n") >= 5; }));
    ranks.signal(killed, SIGKILL);
    CHECK(ranks.wait(killed) == 128 + SIGKILL);
    CHECK(ranks.wait(1 - killed) == 6);
    CHECK_THAT(ranks.said(1 - killed), Catch::Contains("error: ") && Catch::Contains("a peer was lost"));
    CHECK(place.run(2, name, {"steps=2000", "--accept", "steps", "time=2s"})[0] == 75);
  }
}

TEST_CASE("what only one rank can see ends all of them, and is said by the one and by the first", "[multi]") {
  const Place place;
  SECTION("another run file") {
    const std::string other = place / "other.yaml";
    std::ofstream(other) << testing::slurp(place / "run.yaml") << "seed: 2\n";
    // Each rank gets the file of its number.
    std::ofstream(place / "start.sh") << "#!/bin/sh\nif [ $RANK = 1 ]; then f=other.yaml; else f=run.yaml; fi\nexec " << QUELL_PROGRAM
                                      << " train $f --run runs/two\n";
    Ranks ranks(2, "/bin/sh", {"start.sh"}, {}, place.path());
    const Codes codes = ranks.wait();
    INFO(ranks.said());
    CHECK(codes == all(2, 2));
    CHECK_THAT(ranks.said(1), Catch::Contains("error: run file: it gives another configuration than on rank 0"));
    CHECK_THAT(ranks.said(0), Catch::Contains("error: rank 1: run file: it gives another"));
    CHECK_FALSE(files::exists(place.folder("two")));
  }
  SECTION("a folder that the first rank may not take") {
    fs::create_directories(place.folder("straight"));
    std::ofstream(place.folder("straight") + "/mine.txt") << "precious";
    Ranks ranks(2, QUELL_PROGRAM, {"train", "run.yaml"}, {}, place.path());
    CHECK(ranks.wait() == all(2, 2));
    CHECK_THAT(ranks.said(0), Catch::Contains("runs/straight: exists already"));
    CHECK(ranks.said(1).empty());
  }
  SECTION("a number of ranks that does not divide the batch") {
    CHECK(place.run(3, "three") == all(3, 2));
    CHECK_THAT(place.said(), Catch::Contains("data.batch: 8 is no multiple of world x micro_batches = 3 x 1 = 3; the nearest are 6 and 9"));
  }
  SECTION("a rank that is there twice, and worlds of two sizes") {
    for (const char* variable : {"RANK=0", "WORLD_SIZE=3"}) {
      // The one that comes second says so. The other waits until it is told to stop, or loses the store that the second one held.
      std::ofstream(place / "start.sh") << "#!/bin/sh\nif [ $RANK = 1 ]; then export " << variable << "; unset QUELL_STORE_FD; export TORCHELASTIC_USE_AGENT_STORE=True; fi\nexec "
                                        << QUELL_PROGRAM << " train run.yaml --run runs/two\n";
      Ranks ranks(2, "/bin/sh", {"start.sh"}, {}, place.path());
      ranks.wait_for([] { return false; });  // one ends
      for (const int rank : {0, 1}) ranks.signal(rank, SIGTERM);
      Codes codes = ranks.wait();
      INFO(ranks.said());
      std::sort(codes.begin(), codes.end());
      CHECK((codes == Codes{2, 6} || codes == Codes{2, 75}));
      CHECK_THAT(ranks.said(), Catch::Contains("rank 0: there is another process of this rank; each needs a RANK of its own") ||
                                   Catch::Contains(": all must be told the same WORLD_SIZE"));
      if (codes[1] == 75) CHECK_THAT(ranks.said(), Catch::Contains("stopped on request while the ranks looked for each other; nothing was begun"));
    }
  }
  SECTION("ranks that do not come are waited for by name") {
    Ranks ranks(2, QUELL_PROGRAM, {"train", "run.yaml"}, {"WORLD_SIZE=4"}, place.path());
    REQUIRE(ranks.wait_for([&] {
      const auto says = [&](int rank, const char* line) { return ranks.said(rank).find(line) != std::string::npos; };
      return says(1, "rank 1: waiting     for ranks 2, 3 of 4 at 127.0.0.1:") && says(0, "waiting     for ranks 2, 3 of 4 at 127.0.0.1:");
    }));
    for (const int rank : {0, 1}) ranks.signal(rank, SIGINT);
    CHECK(ranks.wait() == all(2, 75));
  }
  SECTION("ranks that do not know of each other") {
    Ranks ranks(1, QUELL_PROGRAM, {"train", "run.yaml"}, {"RANK=abc"}, place.path());
    CHECK(ranks.wait() == Codes{2});
  }
}

}  // namespace quell
