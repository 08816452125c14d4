// verify-resume and replay, as commands.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "run_place.h"

namespace quell {
namespace {

using testing::Outcome;
using testing::slurp;

struct Place : testing::RunPlace {
  Place()
      : RunPlace("name: tiny\nsteps: 30\nthreads: 1\nmodel: {context: 32, width: 32, layers: 2, heads: 2, mlp: {width: 64}}\n"
                 "data: {train: text/train, batch: 8}\nevaluate: {sets: [{name: valid, data: text/valid}], every: 8}\n"
                 "report: {every: 1}\ncheckpoint: {every: 10}\noptimizer: {schedule: {warmup: 5}}\n") {}
};

}  // namespace

TEST_CASE("verify-resume proves a run file, also with overrides, and leaves nothing behind", "[unit]") {
  const Place place;
  const Outcome outcome = place.run("verify-resume run.yaml micro_batches=2 --set ema=0.9 --steps 36 --kills 6 --json");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  const Json json = parse_json(outcome.out, "answer");
  CHECK(json["steps"] == 36);
  CHECK(json["kills"].get<int>() + json["kills_in_a_save"].get<int>() >= 1);
  CHECK(json["rows"].get<int>() == 36 + 6);  // evaluations before the first step, after every eighth and the last
  CHECK(files::list(place / "runs").empty());
}

TEST_CASE("an override of what verify-resume sets itself is not passed over in silence", "[unit]") {
  const Place place;
  for (const char* override_text : {"steps=12", "--set steps=12"}) {
    const Outcome outcome = place.run(cat("verify-resume run.yaml ", override_text));
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains("steps=12: verify-resume sets steps itself; give --steps N"));
  }
  CHECK(place.run("verify-resume run.yaml checkpoint.every=3").code == 2);
}

TEST_CASE("verify-resume says what a run that cannot be made has said", "[unit]") {
  const Place place;
  const Outcome outcome = place.run("verify-resume run.yaml data.train=nowhere");
  CHECK(outcome.code == 7);
  CHECK_THAT(outcome.err, Catch::Contains("the straight run fails") && Catch::Contains("nowhere"));
}

TEST_CASE("replay makes a step again: the same numbers, or the ones that are not", "[unit]") {
  const Place place;
  REQUIRE(place.run("train run.yaml").code == 0);
  const std::string metrics = place / "runs/tiny/metrics.jsonl", before = slurp(metrics);
  const Outcome same = place.run("replay runs/tiny --step 28");
  INFO(same.err);
  CHECK(same.code == 0);
  CHECK_THAT(same.out, Catch::Contains("step 28 again, from runs/tiny/checkpoints/step-00000020") && Catch::Contains("(persistent)"));
  CHECK(slurp(metrics) == before);
  // One digit of what was recorded of step 28, as a faulty machine would have made it.
  const size_t row = before.find("{\"step\":28,"), at = before.find("\"grad_norm\":", row) + 12;
  std::string other = before;
  other[at] = other[at] == '9' ? '8' : '9';
  std::ofstream(metrics, std::ios::trunc) << other;
  const Outcome differs = place.run("replay runs/tiny --step 28");
  CHECK(differs.code == 1);
  CHECK_THAT(differs.out, Catch::Contains("  grad_norm: ") && Catch::Contains("(transient)"));
  CHECK(place.run("replay runs/tiny --step 3").code == 4);
  CHECK(place.run("replay runs/tiny --step 31").code == 2);
}

TEST_CASE("replay on other data than the run was begun with is refused: its numbers would blame the machine", "[unit]") {
  const Place place;
  REQUIRE(place.run("train run.yaml").code == 0);
  std::filesystem::remove_all(place / "text");
  std::ofstream(place / "text.txt", std::ios::app) << "line 3 of a text,\n";
  REQUIRE(place.run("data prepare --tokenizer char --out text text.txt").code == 0);
  const Outcome outcome = place.run("replay runs/tiny --step 28");
  CHECK(outcome.code == 3);
  CHECK_THAT(outcome.err, Catch::Contains("text/train: is not what this run was begun with"));
}

}  // namespace quell
