// Which checkpoints stay and which is gone on from: what users of other trainers lost their runs by, each theme once.
#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cases.h"
#include "checkpoint/saver.h"
#include "saves.h"
#include "temporary.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Cases;
using testing::manifest_of;
using testing::newest_step;
using testing::run_a;
using testing::run_b;
using testing::save;
using testing::state_of;
using testing::steps_in;
using testing::TemporaryFolder;

using Steps = std::vector<int64_t>;

void save_all(const std::string& folder, const Steps& steps) {
  for (const int64_t step : steps) save(folder, step);
}

// After `config` was obeyed, where all of `verified` were saved by this process.
Steps kept(const std::string& folder, const CheckpointConfig& config, const std::set<int64_t>& verified) {
  retain(folder, run_a, config, verified);
  return steps_in(folder);
}
Steps kept(const std::string& folder, const CheckpointConfig& config) {
  const Steps steps = steps_in(folder);
  return kept(folder, config, {steps.begin(), steps.end()});
}

void flip_last_bit(const std::string& file) {
  std::string bytes = files::read(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
}

SaveResult saved_by(Saver& saver, int64_t step) {
  saver.begin(state_of(static_cast<double>(step)), manifest_of(step), [] {});
  return *saver.result(/*wait=*/true);
}

// Saved at each step with what an evaluation gave there; nothing where there was none.
void save_evaluated(const std::string& folder, const std::string& metric, const std::vector<std::optional<double>>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Manifest manifest = manifest_of(static_cast<int64_t>(i) + 1);
    if (values[i]) manifest.metrics[metric] = *values[i];
    save(folder, manifest);
  }
}

struct Theme {
  const char* what;
  void (*holds)(const std::string& folder);
};

const Theme themes[] = {
    {"steps are ordered as numbers, not as names",
     [](const std::string& folder) {
       save_all(folder, {9'900, 9'950, 10'000});
       CHECK(kept(folder, {.keep_last = 2}) == Steps{9'950, 10'000});
     }},
    {"steps of more digits than names are padded to",
     [](const std::string& folder) {
       save_all(folder, {99'999'998, 99'999'999, 100'000'000, 1'000'000'000});
       CHECK(kept(folder, {.keep_last = 2}) == Steps{100'000'000, 1'000'000'000});
       CHECK(newest_step(folder) == 1'000'000'000);
     }},
    {"a limit of 1 keeps two",
     [](const std::string& folder) {
       save_all(folder, {1, 2, 3});
       CHECK(kept(folder, {.keep_last = 1}) == Steps{2, 3});
     }},
    {"a limit of 0 keeps two",
     [](const std::string& folder) {
       save_all(folder, {1, 2, 3});
       CHECK(kept(folder, {.keep_last = 0}) == Steps{2, 3});
     }},
    {"a higher step of another run is not gone on from",
     [](const std::string& folder) {
       save_all(folder, {3});
       save(folder, manifest_of(200, run_b));
       CHECK(newest_step(folder) == 3);
     }},
    {"a higher step of another run takes no place among ours, and is not removed",
     [](const std::string& folder) {
       save_all(folder, {1, 2, 3});
       save(folder, manifest_of(200, run_b));
       save(folder, manifest_of(201, run_b));
       CHECK(kept(folder, {.keep_last = 2}, {1, 2, 3}) == Steps{2, 3, 200, 201});
     }},
    {"a higher step of this run from before it was set back takes no place of what is saved now",
     [](const std::string& folder) {
       save_all(folder, {1, 2, 8, 9});
       CHECK(kept(folder, {.keep_last = 2}, {2, 3}) == Steps{1, 2, 8, 9});  // 3 is not there yet: nothing may go for it
       save(folder, 3);
       CHECK(kept(folder, {.keep_last = 2}, {2, 3}) == Steps{2, 3, 8, 9});
     }},
    {"a save that fails removes none of the old ones",
     [](const std::string& folder) {
       Saver saver(folder, {.keep_last = 2});
       for (const int64_t step : {1, 2}) REQUIRE(saved_by(saver, step).problem == "");
       files::set_faults([](const std::string& operation, const std::string&) { return operation == "rename" ? EIO : 0; });
       const SaveResult failed = saved_by(saver, 3);
       files::set_faults({});
       CHECK(failed.path == "");
       CHECK(steps_in(folder) == Steps{1, 2});
     }},
    {"what is damaged takes no place among the last ones",
     [](const std::string& folder) {
       save_all(folder, {1, 2, 3});
       fs::resize_file(folder + "/step-00000003/weights.safetensors", 100);
       CHECK(kept(folder, {.keep_last = 2}, {1, 2}) == Steps{1, 2, 3});
     }},
    {"what is damaged inside, so that its size is right, does not push out what is known to be right",
     [](const std::string& folder) {
       save_all(folder, {1, 2, 3, 4});
       flip_last_bit(folder + "/step-00000003/weights.safetensors");
       flip_last_bit(folder + "/step-00000004/weights.safetensors");
       Saver saver(folder, {.keep_last = 2}, /*verified=*/2);  // a run goes on from 2
       REQUIRE(saved_by(saver, 5).problem == "");
       CHECK(newest_step(folder) == 5);
       const Steps left = steps_in(folder);
       CHECK(std::count(left.begin(), left.end(), 2) == 1);
     }},
    {"files and folders of a user are not touched",
     [](const std::string& folder) {
       save_all(folder, {1, 2, 3});
       for (const char* name : {"/step-7", "/my-step-00000001", "/step-00000001.bak", "/best"}) fs::create_directories(folder + name);
       std::ofstream(folder + "/step-00000000.txt") << "mine";
       retain(folder, run_a, {.keep_last = 2}, {1, 2, 3});
       CHECK(files::list(folder) == std::vector<std::string>{"best", "my-step-00000001", "step-00000000.txt", "step-00000001.bak",
                                                             "step-00000002", "step-00000003", "step-7"});
     }},
    {"what has a checkpoint's name and none of its contents is passed over and not touched",
     [](const std::string& folder) {
       save_all(folder, {2, 3, 4});
       fs::create_directories(folder + "/step-00000001");
       std::ofstream(folder + "/step-00000001/manifest.json") << "{}";
       CHECK(kept(folder, {.keep_last = 2}, {2, 3, 4}) == Steps{1, 3, 4});
     }},
    {"a removal that was killed in its middle leaves nothing that looks like a checkpoint, and goes at the next start",
     [](const std::string& folder) {
       save_all(folder, {1, 2, 3});
       files::set_faults([](const std::string& operation, const std::string& path) {
         return operation == "unlink" && path.find(".old-") != std::string::npos ? EIO : 0;
       });
       CHECK_THROWS_AS(retain(folder, run_a, {.keep_last = 2}, {1, 2, 3}), MachineError);
       files::set_faults({});
       CHECK(steps_in(folder) == Steps{2, 3});
       CHECK(files::list(folder).size() == 3);
       remove_leftovers(folder, testing::ignore);
       CHECK(files::list(folder).size() == 2);
     }},
    {"a save that was killed in its middle is never listed, and goes at the next start",
     [](const std::string& folder) {
       save_all(folder, {1});
       fs::copy(folder + "/step-00000001", folder + "/.step-00000002.tmp-" + std::string(32, 'c'), fs::copy_options::recursive);
       CHECK(newest_step(folder) == 1);
       remove_leftovers(folder, testing::ignore);
       CHECK(files::list(folder) == std::vector<std::string>{"step-00000001"});
     }},
    {"files without a byte are no checkpoint",
     [](const std::string& folder) {
       save_all(folder, {1, 2});
       for (const char* name : {"manifest.json", "weights.safetensors", "optimizer.safetensors"}) fs::resize_file(cat(folder, "/step-00000002/", name), 0);
       CHECK(newest_step(folder) == 1);
     }},
    {"milestones stay",
     [](const std::string& folder) {
       save_all(folder, {1, 10, 11, 20, 21, 22});
       CHECK(kept(folder, {.keep_last = 2, .keep_every = 10}) == Steps{10, 20, 21, 22});
     }},
    {"the best by a loss is the smallest, and one without an evaluation is not it",
     [](const std::string& folder) {
       save_evaluated(folder, "valid.loss", {3, 1, {}, 9, 5, 6, 7});
       CHECK(kept(folder, {.keep_last = 2, .keep_best = "valid.loss"}) == Steps{2, 6, 7});
     }},
    {"the best by an accuracy is the largest, and it stays while better ones are not there",
     [](const std::string& folder) {
       save_evaluated(folder, "valid.accuracy", {0.3, 0.1, 0.2, 0.9, 0.5, 0.6, 0.7});
       CHECK(kept(folder, {.keep_last = 2, .keep_best = "valid.accuracy"}) == Steps{4, 6, 7});
     }},
    {"what cannot be gone on from is not tried again and again: its step's next save takes its place",
     [](const std::string& folder) {
       save_all(folder, {1, 2});
       flip_last_bit(folder + "/step-00000002/optimizer.safetensors");
       CHECK(newest_step(folder) == 1);
       Saver saver(folder, {.keep_last = 2}, 1);
       CHECK(saved_by(saver, 2).problem == "");
       CHECK(newest_step(folder) == 2);
     }},
    {"a checkpoint bears the step of its state, though training has gone on",
     [](const std::string& folder) {
       Saver saver(folder, {});
       State state = state_of(7);
       saver.begin(state, manifest_of(7), [] {});
       state.tensors["weights.matrix"].fill_(8);  // the next step
       CHECK(saver.result(true)->path == folder + "/step-00000007");
       CHECK(newest_step(folder) == 7);  // name, manifest and every tensor
     }},
    {"removing that fails is told, costs nothing, and is made up for by the next save",
     [](const std::string& folder) {
       Saver saver(folder, {.keep_last = 2});
       for (const int64_t step : {1, 2}) saved_by(saver, step);
       files::set_faults([](const std::string& operation, const std::string&) { return operation == "unlink" ? EROFS : 0; });
       const SaveResult third = saved_by(saver, 3);
       files::set_faults({});
       CHECK(third.path == folder + "/step-00000003");
       CHECK_THAT(third.problem, Catch::Contains("Read-only file system"));
       CHECK(newest_step(folder) == 3);
       CHECK(saved_by(saver, 4).problem == "");
       CHECK(steps_in(folder) == Steps{3, 4});
     }},
};

}  // namespace

TEST_CASE("what others lost runs by, when old checkpoints are removed and the newest is chosen, does not happen here", "[unit][K7]") {
  Cases cases("K7");
  for (const Theme& theme : themes) {
    INFO(theme.what);
    const TemporaryFolder home;
    theme.holds(home / "c");
    cases.add();
  }
  CHECK(cases.done() >= 20);
}

TEST_CASE("what only looks sound is not counted: a newer one that was passed over, an older one that is damaged inside", "[unit]") {
  const TemporaryFolder home;
  const std::string folder = home / "c";
  save_all(folder, {1, 2, 3, 4});
  flip_last_bit(folder + "/step-00000004/weights.safetensors");
  fs::copy(folder + "/step-00000001", folder + "/step-00000002.copy", fs::copy_options::recursive);
  fs::remove_all(folder + "/step-00000002");
  fs::rename(folder + "/step-00000002.copy", folder + "/step-00000002");  // by its name of step 2, by its manifest of step 1
  // A run goes on from 3, since 4 is damaged, and stops right after: whatever it keeps, 3 is among it, with what it saved itself.
  Saver saver(folder, {.keep_last = 2}, /*verified=*/3);
  save(folder, 10);
  fs::rename(folder + "/step-00000010", folder + "/step-00000009");
  REQUIRE(saved_by(saver, 5).path == folder + "/step-00000005");
  CHECK(steps_in(folder) == Steps{2, 3, 4, 5, 9});  // 1 went; what is not what it says it is, is nobody's to remove
  CHECK(newest_step(folder) == 5);
}

}  // namespace quell
