// Exact resume: from whatever step, the rest of a run is the uninterrupted one's bit for bit. Compared are every row of the metrics
// (but for the clock) and the digest of every tensor and number of the last checkpoint.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "checkpoint/commit.h"
#include "checkpoint/folder.h"
#include "checkpoint/staging.h"
#include "config/keys.h"
#include "train/changes.h"
#include "train/loop.h"
#include "train/resume.h"
#include "train_support.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::model_of;
using testing::TemporaryFolder;
using testing::tiny_config;
using testing::tiny_vision;
using testing::TinyImages;
using testing::TinyText;

// One start of a run, as a session makes it.
LoopResult start(RunConfig config, const std::string& folder_path, const std::string& resume, const std::vector<std::string>& accept = {}) {
  config.resume = resume;
  Beginning beginning = begin_run(resume, folder_path);
  Run run(config, {});
  if (beginning.from) require_same_run(run, data_record(run), *beginning.from, accept);
  if (beginning.from) restore(run, *beginning.from);
  RunFolder folder(beginning.lock ? std::move(*beginning.lock) : FolderLock(folder_path, false), run, beginning.id);
  Report report(folder, run.config, {.peak_flops = 0, .quiet = true});
  if (beginning.from) restore(report, *beginning.from);
  Saves saves(folder, run.config);
  const LoopResult result = train(run, report, saves);
  saves.now(run, report);
  return result;
}

// Rows without the clock.
std::vector<Json> rows_of(const std::string& folder) {
  std::vector<Json> rows;
  std::istringstream lines(files::read(folder + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    Json row = parse_json(line, folder);
    for (const char* clock : {"time", "tokens_per_s", "images_per_s"}) row.erase(clock);
    rows.push_back(row);
  }
  return rows;
}

// Of the newest checkpoint: its tensors' digests, and its numbers but for the clock and the length of the metrics, which holds it.
std::string content_of(const std::string& folder) {
  const auto newest = newest_sound(folder + "/checkpoints", "", [](const std::string&) {});
  REQUIRE(newest);
  std::string text = newest->manifest.content_digest();
  for (const auto& [name, value] : newest->manifest.integers) {
    if (name != "report.metrics_bytes") text += cat("\n", name, " ", value);
  }
  for (const auto& [name, value] : newest->manifest.numbers) {
    if (name != "report.seconds") text += cat("\n", name, " ", value);
  }
  return text;
}

void leave_until(const std::string& folder, int64_t step) {
  for (const Entry& entry : list_checkpoints(folder + "/checkpoints")) {
    if (entry.step > step) fs::remove_all(entry.path);
  }
}

// A run of 24 steps that saves after each, with what has state: accumulation, epochs that end inside, dropout, an average,
// evaluations, health.
RunConfig busy(RunConfig config) {
  config.steps = 24;
  config.micro_batches = 2;
  config.evaluate.every = 5;
  config.health = {.every = 3, .entropy_every = 6};
  config.loss.z = 1e-3;
  config.ema = 0.9;
  config.optimizer.schedule.warmup = 6;
  config.checkpoint.every = 1;
  config.checkpoint.keep_last = 1000;
  config.checkpoint.verify = Verify::sizes;
  return config;
}

// Starts again from each of `steps` in a copy of the straight run's folder that ends there.
void resumes_exactly(const RunConfig& config, const TemporaryFolder& home, const std::vector<int64_t>& steps) {
  const std::string straight = home / "straight";
  start(config, straight, "never");
  const std::vector<Json> rows = rows_of(straight);
  const std::string content = content_of(straight);
  REQUIRE(list_checkpoints(straight + "/checkpoints").size() == static_cast<size_t>(*config.steps));
  for (const int64_t step : steps) {
    CAPTURE(step);
    const std::string again = home / cat("again", step);
    fs::copy(straight, again, fs::copy_options::recursive);
    leave_until(again, step);
    CHECK(start(config, again, "must").steps == *config.steps);
    CHECK(rows_of(again) == rows);
    CHECK(content_of(again) == content);
    fs::remove_all(again);
  }
}

}  // namespace

TEST_CASE("a decoder's run goes on exactly from any step, in any epoch, evaluated or not", "[unit]") {
  const TinyText text;
  RunConfig config = busy(tiny_config(text));
  model_of(config).dropout = 0.1;
  resumes_exactly(config, text.folder(), {1, 4, 5, 6, 15, 23, 24});
}

TEST_CASE("a vision transformer's run goes on exactly, with its augmentation and over the end of an epoch", "[unit]") {
  const TinyImages images;
  RunConfig config = busy(tiny_vision(images));
  std::get<VitConfig>(config.model).drop_path = 0.2;
  std::get<ImageData>(config.data).augment = {.flip = true, .crop_padding = 2, .random_resized_crop = {}};
  resumes_exactly(config, images.folder(), {1, 7, 8, 9, 23});  // eight steps are an epoch
}

TEST_CASE("precisions, optimizers' settings and frozen parts go on exactly", "[unit]") {
  const TinyText text;
  RunConfig config = busy(tiny_config(text));
  config.steps = 8;
  const int which = GENERATE(0, 1, 2, 3);
  CAPTURE(which);
  if (which == 0) config.precision = Precision::bf16;
  if (which == 1) config.precision = Precision::fp64;
  if (which == 2) config.optimizer.freeze = {"blocks.0.*"};
  if (which == 3) {
    config.ema = {};
    config.optimizer.clip = {ClipKind::value, 0.1};
    config.optimizer.decay = Decay::independent;
  }
  resumes_exactly(config, text.folder(), {3});
}

TEST_CASE("from a path a new folder begins, and an older checkpoint is no worse than the newest", "[unit]") {
  const TinyText text;
  const RunConfig config = busy(tiny_config(text));
  const std::string straight = text.folder() / "straight", other = text.folder() / "other";
  start(config, straight, "never");
  start(config, other, straight + "/checkpoints/" + checkpoint_name(7));
  CHECK(content_of(other) == content_of(straight));
  const std::vector<Json> all = rows_of(straight);
  std::vector<Json> rest;
  std::copy_if(all.begin(), all.end(), std::back_inserter(rest), [](const Json& row) { return row.at("step") > 7; });
  CHECK(rows_of(other) == rest);
}

TEST_CASE("rows of steps that are made again are set aside, not lost", "[unit]") {
  const TinyText text;
  RunConfig config = busy(tiny_config(text));
  const std::string folder = text.folder() / "run";
  start(config, folder, "never");
  const std::string before = files::read(folder + "/metrics.jsonl");
  leave_until(folder, 10);
  start(config, folder, "must");
  const std::string aside = files::read(folder + "/metrics.set_aside.jsonl");
  CHECK(before.ends_with(aside));
  CHECK_THAT(aside, Catch::StartsWith("{\"step\":11,"));
}

TEST_CASE("without any one thing that is saved, no run goes on", "[unit]") {
  const TinyText text;
  const RunConfig config = busy(tiny_config(text));
  const std::string folder = text.folder() / "run";
  start(config, folder, "never");
  const auto whole = newest_sound(folder + "/checkpoints", "", [](const std::string&) {});
  REQUIRE(whole);
  const State state = whole->state();
  std::vector<std::string> names;
  std::set<std::string> grows;  // what need not be there: nothing has been raised, nothing evaluated
  for (const auto& [name, tensor] : state.tensors) names.push_back(name);
  for (const auto& [name, value] : state.integers) names.push_back(name);
  for (const auto& [name, value] : state.numbers) names.push_back(name);
  for (const std::string& name : names) {
    if (name.starts_with("report.alarms.") || name.starts_with("report.last.")) continue;
    CAPTURE(name);
    State lacking = state;
    REQUIRE(lacking.tensors.erase(name) + lacking.integers.erase(name) + lacking.numbers.erase(name) == 1);
    Staging staging;
    Manifest manifest = whole->manifest;
    manifest.files.clear();
    manifest.integers = lacking.integers;
    manifest.numbers = lacking.numbers;
    const std::string place = text.folder() / "lacking";
    fs::create_directories(place);
    const std::string path = commit(place, staging.take(lacking), manifest, Verify::full);
    std::string message;
    try {
      start(config, text.folder() / "again", path);
    } catch (const CheckpointError& problem) {
      message = problem.what();
    }
    const std::string part = name.substr(0, name.find('.'));
    CHECK_THAT(message, Catch::Contains(cat(part, ": missing: ", name.substr(part.size() + 1))));
    fs::remove_all(place);
    fs::remove_all(text.folder() / "again");
  }
}

TEST_CASE("must wants a checkpoint, auto takes one where it is, never wants a new folder", "[unit]") {
  const TinyText text;
  RunConfig config = busy(tiny_config(text));
  config.steps = 4;
  const std::string folder = text.folder() / "run";
  CHECK_THROWS_MATCHES(begin_run("must", folder), CheckpointError, Catch::Message(folder + ": no such folder, so there is no run to go on with"));
  CHECK_THROWS_AS(begin_run(text.folder() / "nowhere", folder), CheckpointError);
  CHECK_FALSE(files::exists(folder));
  start(config, folder, "auto");
  CHECK_THROWS_AS(begin_run("never", folder), UsageError);
  CHECK(begin_run("auto", folder).from->manifest.step == 4);
  fs::remove(folder + "/weights.safetensors");
  leave_until(folder, 0);
  CHECK_THROWS_MATCHES(begin_run("must", folder), CheckpointError,
                       Catch::Message(folder + "/checkpoints: holds no checkpoint to go on from; resume: auto begins anew where there is none"));
  CHECK_FALSE(begin_run("auto", folder).from);
}

TEST_CASE("auto begins anew only where nothing would be lost", "[unit]") {
  const TinyText text;
  RunConfig config = busy(tiny_config(text));
  config.steps = 2;
  const std::string folder = text.folder() / "run";
  // A folder of the user's is none of ours, and nothing in it is touched.
  fs::create_directories(folder);
  std::ofstream(folder + "/lock") << "mine";
  std::ofstream(folder + "/config.yaml") << "mine";
  CHECK_THROWS_MATCHES(begin_run("auto", folder), UsageError, Catch::Message(folder + ": is no run's folder (there is no run.json), so nothing is written into it; choose another --run DIR"));
  CHECK(files::read(folder + "/lock") == "mine");
  fs::remove_all(folder);
  start(config, folder, "auto");
  for (const Entry& entry : list_checkpoints(folder + "/checkpoints")) fs::resize_file(entry.path + "/weights.safetensors", 100);
  CHECK_THROWS_AS(begin_run("auto", folder), CheckpointError);
  leave_until(folder, 0);
  std::ofstream(folder + "/weights.safetensors") << "a finished run's";
  CHECK_THROWS_AS(begin_run("auto", folder), UsageError);
}

TEST_CASE("metrics that end in the middle of a line, or are gone, cost no row that is made from now on", "[unit]") {
  const TinyText text;
  const RunConfig config = busy(tiny_config(text));
  const std::string folder = text.folder() / "run", metrics = folder + "/metrics.jsonl";
  start(config, folder, "never");
  const std::vector<Json> all = rows_of(folder);
  leave_until(folder, 10);
  const std::string whole = files::read(metrics);
  const bool gone = GENERATE(false, true);
  if (gone) fs::remove(metrics);
  else fs::resize_file(metrics, whole.find("{\"step\":9,") + 20);
  start(config, folder, "must");
  const std::vector<Json> rows = rows_of(folder);
  REQUIRE(rows.size() >= 14);
  CHECK(std::equal(rows.end() - 14, rows.end(), all.end() - 14));
}

TEST_CASE("a damaged run.json says what to do, and without it the newest checkpoint says whose run it is", "[unit]") {
  const TinyText text;
  const RunConfig config = busy(tiny_config(text));
  const std::string folder = text.folder() / "run", file = folder + "/run.json";
  start(config, folder, "never");
  const std::string id = run_id_of(folder);
  std::ofstream(file, std::ios::trunc) << "";
  CHECK_THROWS_MATCHES(begin_run("auto", folder), CheckpointError,
                       Catch::Message(file + ": holds no id of a run; remove it, and the newest checkpoint says whose run it is"));
  fs::remove(file);
  start(config, folder, "must");
  CHECK(run_id_of(folder) == id);
}

TEST_CASE("a plan that ends before the checkpoint is refused", "[unit]") {
  const TinyText text;
  RunConfig config = busy(tiny_config(text));
  config.optimizer.schedule.kind = ScheduleKind::constant;
  start(config, text.folder() / "run", "never");
  config.steps = 10;
  CHECK_THROWS_MATCHES(start(config, text.folder() / "run", "must"), UsageError,
                       Catch::Message("steps: the plan of 10 ends before step 24, from which this run goes on"));
}

TEST_CASE("what was counted and raised before goes on: bad steps in a row, alarms", "[unit]") {
  FinitePolicy policy({.on_nonfinite = OnNonfinite::skip, .skip_limit = 3}), resumed({.on_nonfinite = OnNonfinite::skip, .skip_limit = 3});
  for (int i = 0; i < 3; ++i) CHECK_FALSE(policy.must_stop(true));
  resumed.restore(policy.state());
  CHECK(resumed.skipped() == 3);
  CHECK(resumed.must_stop(true));

  HealthReport collapsed;
  collapsed.layers.resize(2);
  collapsed.layers[1].logit_bound = {2e3};
  collapsed.layers[1].entropy_relative = {0.01};
  HealthAlarms alarms, after;
  CHECK(alarms.look(collapsed, 1).size() == 1);  // the logit, now
  CHECK(alarms.look(collapsed, 2).empty());
  after.restore(alarms.state());
  const std::vector<Alarm> raised = after.look(collapsed, 3);
  REQUIRE(raised.size() == 1);  // the third report of low entropy; the logit was said
  CHECK_THAT(raised[0].message, Catch::Contains("collapsed"));
}

TEST_CASE("two processes never work in one folder", "[unit]") {
  const TinyText text;
  const std::string folder = text.folder() / "run";
  const FolderLock first(folder, false);
  CHECK_THROWS_MATCHES(FolderLock(folder, true), MachineError, Catch::Message(cat(folder, ": process ", ::getpid(), " on ",
      files::read("/proc/sys/kernel/hostname").substr(0, files::read("/proc/sys/kernel/hostname").find('\n')), " is working in it")));
}

TEST_CASE("every key has a rule for a resumed run, and a changed file is taken, asked about or refused as it says", "[unit]") {
  for (const config::Key& key : config::keys_of<RunConfig>()) {
    CAPTURE(key.path);
    const Change change = judged(key.path);
    CHECK((change.kind == ChangeKind::safe) == change.why.empty() );
  }
  const TinyText text;
  const RunConfig config = busy(tiny_config(text));
  const std::string folder = text.folder() / "run";
  start(config, folder, "never");
  leave_until(folder, 10);
  const auto message_of = [&](const RunConfig& changed, const std::vector<std::string>& accept = {}) -> std::string {
    try {
      start(changed, folder, "must", accept);
    } catch (const Error& problem) {
      return problem.what();
    }
    return "";
  };
  RunConfig changed = config;
  model_of(changed).width = 64;
  changed.optimizer.lr = 0.02;
  changed.report.every = 2;
  CHECK(message_of(changed) ==
        "resume: the run file is not what this run was begun with\n"
        "  cannot be changed in a run:\n"
        "    model.width: 32 -> 64 (the saved weights are of another model)\n"
        "  would change its numbers (--accept KEY takes it):\n"
        "    optimizer.lr: 0.01 -> 0.02 (updates are others)");
  changed = config;
  changed.steps = 30;
  CHECK_THAT(message_of(changed), Catch::Contains("steps: 24 -> 30 (optimizer.schedule.steps=24 keeps the learning rates as they were planned; "
                                                   "--accept steps stretches them)"));
  changed.optimizer.schedule.steps = 24;
  CHECK(message_of(changed) == "");
  leave_until(folder, 10);
  changed = config;
  changed.optimizer.lr = 0.02;
  CHECK(message_of(changed, {"optimizer.lr=0.02"}) == "--accept optimizer.lr=0.02: there is no such key");
  CHECK(message_of(changed, {"optimizer"}) == "");
}

}  // namespace quell
