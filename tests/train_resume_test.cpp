// Exact resume: from whatever step, the rest of a run is the uninterrupted one's bit for bit. Compared are every row of the metrics
// (but for the clock) and the digest of every tensor and number of the last checkpoint.
#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "cases.h"
#include "checkpoint/commit.h"
#include "checkpoint/folder.h"
#include "checkpoint/staging.h"
#include "config/keys.h"
#include "resumed.h"
#include "train/changes.h"
#include "train/loop.h"
#include "train/resume.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::busy;
using testing::Cases;
using testing::content_of;
using testing::leave_until;
using testing::model_of;
using testing::resumes_exactly;
using testing::rows_of;
using testing::start;
using testing::TemporaryFolder;
using testing::tiny_config;
using testing::tiny_vision;
using testing::TinyImages;
using testing::TinyText;

// The first step, the last one, `others`, and what is between them evenly: `count` in all.
std::vector<int64_t> spread(int64_t last, int count, const std::set<int64_t>& others) {
  std::set<int64_t> steps = others;
  steps.insert({1, last});
  const int64_t stride = last / count;
  for (int64_t step = last - 1; static_cast<int>(steps.size()) < count; step -= stride) steps.insert(step);
  return {steps.begin(), steps.end()};
}

}  // namespace

TEST_CASE("a decoder's run goes on exactly from any step, in any epoch, evaluated or not", "[unit][R1]") {
  const TinyText text;
  RunConfig config = busy(tiny_config(text));
  model_of(config).dropout = 0.1;
  config.steps = testing::in_full() ? 200 : 24;
  Cases cases("R1", 7, 30);
  resumes_exactly(config, text.folder(), spread(*config.steps, cases.wanted(), {4, 5, 6}), cases);
}

TEST_CASE("a vision transformer's run goes on exactly, with its augmentation and over the end of an epoch", "[unit][R1]") {
  const TinyImages images;
  RunConfig config = busy(tiny_vision(images));
  std::get<VitConfig>(config.model).drop_path = 0.2;
  std::get<ImageData>(config.data).augment = {.flip = true, .crop_padding = 2, .random_resized_crop = {}};
  config.steps = testing::in_full() ? 200 : 24;
  Cases cases("R1", 5, 30);
  resumes_exactly(config, images.folder(), spread(*config.steps, cases.wanted(), {7, 8, 9}), cases);  // eight steps are an epoch
}

TEST_CASE("training draws nothing from LibTorch's generators, whose state is therefore none of a run's", "[unit]") {
  const TinyText text;
  const TinyImages images;
  RunConfig decoder = busy(tiny_config(text)), vision = busy(tiny_vision(images));
  model_of(decoder).dropout = 0.1;
  decoder.evaluate.sample = 20;
  std::get<VitConfig>(vision.model).drop_path = 0.2;
  std::get<ImageData>(vision.data).augment = {.flip = true, .crop_padding = 2, .random_resized_crop = {}};
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const at::Tensor before = generator.get_state();
  for (const RunConfig& config : {decoder, vision}) {
    start(config, text.folder() / kind_of(config.data), "never");
    CHECK(generator.get_state().equal(before));
  }
  at::rand({1});  // what would be seen
  CHECK_FALSE(generator.get_state().equal(before));
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

TEST_CASE("the joined log holds every step once, wherever a killed run's log ends", "[unit][R8]") {
  const TinyText text;
  const RunConfig config = busy(tiny_config(text));
  const std::string straight = text.folder() / "straight";
  start(config, straight, "never");
  const std::string whole = files::read(straight + "/metrics.jsonl");
  const std::vector<Json> rows = rows_of(straight);
  for (Cases cases("R8", 3, 11); cases.next();) {
    const std::string folder = text.folder() / cat("again", cases.number());
    fs::copy(straight, folder, fs::copy_options::recursive);
    const int64_t step = 2 + 2 * cases.number();
    leave_until(folder, step);
    // What was written before the checkpoint is on the disk; of what follows, a kill leaves any part: the next rows, half a row.
    const auto saved = static_cast<size_t>(newest_sound(folder + "/checkpoints", "", [](const std::string&) {})->manifest.integers.at("report.metrics_bytes"));
    const size_t end = saved + (whole.size() - saved) * static_cast<size_t>(cases.number() % 4) / 4;
    fs::resize_file(folder + "/metrics.jsonl", end);
    CAPTURE(step, saved, end);
    start(config, folder, "must");
    CHECK(rows_of(folder) == rows);
    const std::string aside = end == saved ? "" : files::read(folder + "/metrics.set_aside.jsonl");
    CHECK(aside == whole.substr(saved, end - saved) + (end == saved || whole[end - 1] == '\n' ? "" : "\n"));
  }
}

TEST_CASE("rows of steps that are made again are set aside, not lost", "[unit][R8]") {
  Cases("R8").add();
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
        "    optimizer.lr: 0.01 -> 0.02 (updates are others)\n"
        "  as it was, with all overrides of then, it stands in the run's config.yaml");
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
