// The loop and what it reports: rows of metrics.jsonl, evaluation before, between and after, the ends of a run.
#include <ATen/core/grad_mode.h>
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json.h"
#include "base/signals.h"
#include "base/text.h"
#include "train/loop.h"
#include "train_support.h"

namespace quell {
namespace {

using testing::model_of;
using testing::tiny_config;
using testing::TinyText;

struct Trained {
  LoopResult result;
  std::vector<Json> rows;
};

std::vector<Json> rows_of(const std::string& path) {
  std::vector<Json> rows;
  std::istringstream lines(files::read(path));
  for (std::string line; std::getline(lines, line);) rows.push_back(parse_json(line, path));
  return rows;
}

Trained train_into(const std::string& folder_path, const RunConfig& config) {
  Run run(config, {});
  RunFolder folder(FolderLock(folder_path, false), run);
  Report report(folder, run.config, {.peak_flops = 1e9, .quiet = true});
  Saves saves(folder, run.config);
  Trained trained{.result = train(run, report, saves), .rows = {}};
  trained.rows = rows_of(folder_path + "/metrics.jsonl");
  return trained;
}

const Json* row_with(const std::vector<Json>& rows, int64_t step, const std::string& key) {
  for (const Json& row : rows) {
    if (row.at("step") == step && row.contains(key)) return &row;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a run writes a row a report, with losses, attention health and evaluation", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.steps = 7;
  config.report.every = 3;
  config.evaluate.every = 4;
  config.loss.z = 1e-4;
  config.health = {.every = 3, .entropy_every = 6};
  const Trained trained = train_into(text.folder() / "run", config);
  CHECK(trained.result.ending == Ending::finished);
  CHECK(trained.result.steps == 7);

  for (const int64_t step : {1, 3, 6, 7}) CHECK(row_with(trained.rows, step, "loss") != nullptr);
  for (const int64_t step : {0, 4, 7}) CHECK(row_with(trained.rows, step, "valid.loss") != nullptr);
  CHECK(row_with(trained.rows, 2, "loss") == nullptr);
  for (const Json& row : trained.rows) CHECK((row.contains("step") && row.contains("time")));

  const Json* first = row_with(trained.rows, 1, "loss");
  REQUIRE(first != nullptr);
  for (const char* key : {"aux.z", "grad_norm", "lr", "tokens", "log_z.mean", "log_z.max", "norm_weight.min", "norm_weight.max"}) {
    INFO(key);
    CHECK(first->contains(key));
  }
  for (const char* key : {"logit_bound", "entropy", "entropy_relative", "q_rms", "k_rms"}) {
    INFO(key);
    REQUIRE(first->contains("attention." + std::string(key)));
    CHECK(first->at("attention." + std::string(key)).size() == 2);
    CHECK(first->at("heads." + std::string(key)).at(0).size() == 2);
  }
  CHECK(first->at("tokens") == 8 * 16);
  const Json* evaluation = row_with(trained.rows, 0, "valid.loss");
  for (const char* key : {"valid.accuracy", "valid.attention.logit_max", "valid.heads.entropy"}) CHECK(evaluation->contains(key));
  const double exact = evaluation->at("valid.attention.logit_max").at(0), bound = evaluation->at("valid.attention.logit_bound").at(0);
  CHECK(exact <= bound);
  CHECK(bound <= exact + std::log(16));
}

TEST_CASE("a zero head starts at log vocabulary", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.steps = 1;
  model_of(config).init.head = InitHead::automatic;
  const Trained trained = train_into(text.folder() / "run", config);
  Run run(config, {});
  const double expected = std::log(static_cast<double>(outputs_of(run.config)));
  CHECK(row_with(trained.rows, 0, "valid.loss")->at("valid.loss").get<double>() == Approx(expected).epsilon(1e-6));
}

TEST_CASE("evaluation and reports change nothing of the training", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.steps = 6;
  model_of(config).dropout = 0.2;
  const Trained quiet = train_into(text.folder() / "a", config);
  config.evaluate.every = 1;
  config.evaluate.sample = 5;
  config.health = {.every = 1, .entropy_every = 1};
  const Trained busy = train_into(text.folder() / "b", config);
  for (int64_t step = 1; step <= 6; ++step) {
    CHECK(row_with(quiet.rows, step, "loss")->at("loss") == row_with(busy.rows, step, "loss")->at("loss"));
  }
}

TEST_CASE("the folder of a run is never used twice", "[unit]") {
  const TinyText text;
  const RunConfig config = tiny_config(text);
  train_into(text.folder() / "run", config);
  const std::string before = files::read(text.folder() / "run/metrics.jsonl");
  CHECK_THROWS_WITH(train_into(text.folder() / "run", config),
                    Catch::Contains("/run: exists already, and a run never overwrites another; go on with it by --resume, or choose another name or --run DIR"));
  CHECK(files::read(text.folder() / "run/metrics.jsonl") == before);
}

TEST_CASE("the smallest of steps, tokens and epochs is the plan", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.steps = 1000;
  config.tokens = 8 * 16 * 5 + 1;
  CHECK(Run(config, {}).steps == 6);
  config.epochs = 0.01;
  Run run(config, {});
  CHECK(run.steps == static_cast<int64_t>(std::ceil(0.01 * static_cast<double>(epoch_samples(run.source)) / 8)));
  CHECK(run.steps < 6);
}

TEST_CASE("time stops a run between steps, and it is evaluated and complete", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.steps = {};
  config.time = 1e-9;
  config.optimizer.schedule.kind = ScheduleKind::constant;
  const Trained trained = train_into(text.folder() / "run", config);
  CHECK(trained.result.ending == Ending::out_of_time);
  CHECK(trained.result.steps == 0);
  CHECK(row_with(trained.rows, 0, "valid.loss") != nullptr);
}

TEST_CASE("the policy stop ends at the first bad step, skip after its limit, with exit code 5", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.steps = 50;
  config.stability.on_nonfinite = GENERATE(OnNonfinite::stop, OnNonfinite::skip);
  config.stability.skip_limit = 3;
  Run run(config, {});
  {
    at::NoGradGuard no_gradients;
    run.parameters.find("blocks.0.attention.q.weight")->value.fill_(std::numeric_limits<float>::infinity());
  }
  RunFolder folder(FolderLock(text.folder() / "run", false), run);
  Report report(folder, run.config, {.peak_flops = 0, .quiet = true});
  const int64_t bad = config.stability.on_nonfinite == OnNonfinite::stop ? 1 : 4;  // three are left out, the fourth ends it
  Saves saves(folder, run.config);
  const LoopResult result = train(run, report, saves);
  CHECK(result.ending == Ending::bad_numbers);
  CHECK(result.steps == bad - 1);
  CHECK_THAT(result.what, Catch::StartsWith(cat("step ", bad, ": the loss is nan and the gradient's norm nan; the first tensor that "
                                                "is not finite is the value of blocks.0.attention.q.weight; samples ", 8 * (bad - 1))));
  CHECK_THAT(result.what, Catch::Contains(cat("bad steps in a row: ", bad)));
  for (const Json& row : rows_of(folder.path() + "/metrics.jsonl")) {
    if (row.contains("grad_norm")) CHECK(row.at("grad_norm") == "nan");
  }
}

TEST_CASE("throughput leaves out evaluations and nothing else", "[unit]") {
  const TinyText text;
  Run run(tiny_config(text), {});
  RunFolder folder(FolderLock(text.folder() / "run", false), run);
  Report report(folder, run.config, {.peak_flops = 0, .quiet = true});
  const std::vector<Evaluation> results = evaluate(run);
  StepResult result = train_step(run, 0, nullptr);
  report.step(run, 0, result, {});
  for (int i = 1; i < 20; ++i) result = train_step(run, i, nullptr);  // training before the evaluation, in no row yet
  report.evaluation(run, 20, results, 0);
  report.step(run, 19, result, {});
  const auto rows = rows_of(folder.path() + "/metrics.jsonl");
  REQUIRE(rows.size() == 3);
  const double training = 19.0 * static_cast<double>(run.items_per_step()) / rows[2].at("tokens_per_s").get<double>();
  const auto time = [&](size_t row) { return rows[row].at("time").get<double>(); };
  CHECK(training >= time(1) - time(0));
  CHECK(training <= time(2) - time(0));
}

TEST_CASE("an evaluation's attention health is that of its first batch, in however many parts", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.threads = 1;
  const auto largest = [&](int64_t micro_batches) {
    config.micro_batches = micro_batches;
    Run run(config, {});
    return evaluate(run).at(0).health.layers.at(0).logit_max;
  };
  const auto one = largest(1), four = largest(4);
  REQUIRE(one.size() == 2);
  for (size_t head = 0; head < 2; ++head) CHECK(four[head] == Approx(one[head]).epsilon(1e-5));  // rounding of fp32 sums
}

TEST_CASE("a progress line never exceeds its width and keeps what matters most", "[unit]") {
  const ProgressLine line{.step = 1200, .steps = 1800, .loss = 1.4567, .lr = 0.0012, .grad_norm = 0.61, .items_per_s = 18500,
                          .peak_share = 0.43, .seconds_left = 33};
  CHECK(progress_text(line, 200) ==
        "step 1200/1800  loss 1.457  33 s left  18.5 k tok/s  lr 0.00120  norm 0.610  43 % of peak");
  CHECK(progress_text(line, 30) == "step 1200/1800  loss 1.457");
  for (int width = 1; width < 120; ++width) CHECK(progress_text(line, width).size() <= static_cast<size_t>(width));
}

}  // namespace quell
