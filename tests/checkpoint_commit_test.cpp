// What a save leaves on a disk that fails, on a machine that loses its power, beside a training that goes on.
#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoint/commit.h"
#include "checkpoint/folder.h"
#include "checkpoint/saver.h"
#include "power_loss.h"
#include "temporary.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::PowerLoss;
using testing::TemporaryFolder;

const std::string run_a(32, 'a');

State state_of(double value) {
  State state;
  state.tensors["weights.matrix"] = at::full({5, 7}, value);
  state.tensors["weights.empty"] = at::zeros({0, 3});
  state.tensors["optimizer.first.matrix"] = at::full({5, 7}, -value, at::kDouble);
  state.integers["run.step"] = static_cast<int64_t>(value);
  state.numbers["report.seconds"] = value / 3;
  return state;
}

Manifest manifest_of(int64_t step) {
  static int saves = 0;
  std::string save = std::to_string(++saves);
  Manifest manifest;
  manifest.step = step;
  manifest.save = std::string(32 - save.size(), '0') + save;
  manifest.run = run_a;
  manifest.config = "name: test\n";
  return manifest;
}

std::string save(const std::string& folder, int64_t step, Verify verify = Verify::full) {
  const State state = state_of(static_cast<double>(step));
  Manifest manifest = manifest_of(step);
  manifest.integers = state.integers;
  manifest.numbers = state.numbers;
  Staging staging;
  return commit(folder, staging.take(state), manifest, verify);
}

void ignore(const std::string&) {}

// The newest that is sound, and that it holds what was saved.
int64_t newest_step(const std::string& folder) {
  const auto newest = newest_sound(folder, run_a, ignore);
  if (!newest) return -1;
  const int64_t step = newest->manifest.step;
  const State wanted = state_of(static_cast<double>(step)), found = newest->state();
  CHECK(misfits(wanted, found).empty());
  for (const auto& [name, tensor] : wanted.tensors) CHECK(tensor.equal(found.tensors.at(name)));
  CHECK(found.integers == wanted.integers);
  CHECK(found.numbers == wanted.numbers);
  return step;
}

std::vector<std::string> names(const std::string& folder) { return files::list(folder); }

}  // namespace

TEST_CASE("what is saved is read back, with views, numbers and metrics", "[unit]") {
  const TemporaryFolder home;
  CHECK(save(home / "c", 12) == home / "c/step-00000012");
  CHECK(newest_step(home / "c") == 12);
  CHECK(names(home / "c") == std::vector<std::string>{"step-00000012"});
  CHECK(names(home / "c/step-00000012") == std::vector<std::string>{"manifest.json", "optimizer.safetensors", "weights.safetensors"});
}

TEST_CASE("after any failure of any operation the old checkpoint is there, nothing false is said, and the next save succeeds", "[unit]") {
  for (const int reason : {ENOSPC, EIO, EDQUOT, EROFS, EINTR, -1}) {
    for (int n = 0;; ++n) {
      const TemporaryFolder home;
      const std::string folder = home / "c";
      save(folder, 1);
      int count = 0;
      bool failed = false, saved = false;
      std::string operation, message;
      files::set_faults([&](const char* now, const std::string&) {
        if (count++ != n) return 0;
        failed = true;
        operation = now;
        return reason > 0 || operation == "write" ? reason : EIO;
      });
      try {
        save(folder, 2);
        saved = true;
      } catch (const Error& problem) {  // of the disk, or what was read back is not what was written
        message = problem.what();
      }
      files::set_faults({});
      if (!failed) break;
      CAPTURE(reason, n, operation, message);
      CHECK(newest_step(folder) == (saved ? 2 : 1));
      CHECK(saved == (operation == "write" && (reason == EINTR || reason == -1)));  // those go on; all others give up
      if (!saved) CHECK(message.starts_with(folder));
      remove_leftovers(folder, ignore);
      CHECK(names(folder).size() == (newest_step(folder) == 2 ? 2u : 1u));
      save(folder, 3);
      CHECK(newest_step(folder) == 3);
    }
  }
}

TEST_CASE("a file whose fsync failed is never tried again, though it would succeed", "[unit]") {
  for (int n = 0;; ++n) {
    const TemporaryFolder home;
    save(home / "c", 1);
    int syncs = 0;
    std::vector<std::string> after;
    files::set_faults([&](const std::string& operation, const std::string& path) {
      if (syncs > n) after.push_back(operation + " " + path);
      return operation == "fsync" && syncs++ == n ? EIO : 0;
    });
    bool failed = false;
    try {
      save(home / "c", 2);
    } catch (const MachineError&) {
      failed = true;
    }
    files::set_faults({});
    if (!failed) break;
    CAPTURE(n);
    // Nothing is written any more; what has been is removed, the checkpoint too that had its name already.
    for (const std::string& operation : after) CHECK_FALSE((operation.starts_with("open ") || operation.starts_with("write ")));
    CHECK(names(home / "c") == std::vector<std::string>{"step-00000001"});
  }
}

TEST_CASE("a loss of power at any moment leaves the old checkpoint or the new one, whole", "[unit]") {
  const CheckpointConfig keep{.keep_last = 2};
  int cases = 0, moments = 0;
  for (bool ran_through = false; !ran_through; ++moments) {
    for (uint32_t seed = 0; seed < 22; ++seed, ++cases) {
      const TemporaryFolder home;
      const std::string folder = home / "c";
      save(folder, 1);
      save(folder, 2);
      PowerLoss power(folder, moments);
      bool saved = false;
      try {
        save(folder, 3, Verify::none);
        saved = true;
        retain(folder, run_a, keep, {2, 3});
      } catch (const Error&) {
      }
      ran_through = !power.is_off();
      power.settle();
      const auto unsynced = seed == 0 ? PowerLoss::Unsynced::lost : seed == 1 ? PowerLoss::Unsynced::kept : PowerLoss::Unsynced::mixed;
      power.leave(home / "left", unsynced, seed);
      CAPTURE(moments, seed, saved);
      const int64_t step = newest_step(home / "left");
      CHECK((step == 3 || (!saved && step == 2)));
      // Two are sound at every moment: the newest may turn out to be the broken one.
      int64_t sound = 0;
      for (const Entry& entry : list_checkpoints(home / "left")) {
        try {
          open_checkpoint(entry.path, Verify::full);
          ++sound;
        } catch (const CheckpointError&) {
        }
      }
      CHECK(sound >= 2);
      remove_leftovers(home / "left", ignore);
      for (const std::string& name : names(home / "left")) CHECK(name.starts_with("step-"));
    }
  }
  CHECK(cases >= 300);
}

TEST_CASE("a save holds what the state was when it began, whatever training does meanwhile", "[unit]") {
  const TemporaryFolder home;
  Saver saver(home / "c", {.keep_last = 100});
  State state;
  const at::Tensor flat = at::zeros({300'000});
  state.tensors["weights.a"] = flat.narrow(0, 16, 100'000).view({100, 1000});
  state.tensors["weights.b"] = flat.narrow(0, 100'032, 99'999);
  for (int64_t step = 1; step <= 10; ++step) {
    flat.fill_(static_cast<double>(step));
    state.integers["run.step"] = step;
    saver.begin(state, manifest_of(step), [] {});
    for (int i = 0; i < 20; ++i) flat.add_(1e6);
    const auto result = saver.result(/*wait=*/true);
    REQUIRE(result);
    CHECK(result->problem == "");
    flat.fill_(static_cast<double>(step));
    Staging staging;
    Manifest manifest = manifest_of(step);
    const Manifest asynchronous = read_manifest(result->path);
    const Manifest synchronous = read_manifest(commit(home / "other", staging.take(state), manifest, Verify::full));
    CHECK(asynchronous.content_digest() == synchronous.content_digest());
  }
  CHECK(saver.staged_bytes() == 1'200'000);  // one copy, kept
}

TEST_CASE("a save that fails is told and leaves training to go on; the next one succeeds", "[unit]") {
  const TemporaryFolder home;
  Saver saver(home / "c", {});
  files::set_faults([](const std::string& operation, const std::string&) { return operation == "fsync" ? ENOSPC : 0; });
  saver.begin(state_of(1), manifest_of(1), [] {});
  const auto failed = saver.result(true);
  files::set_faults({});
  REQUIRE(failed);
  CHECK(failed->path == "");
  CHECK_THAT(failed->problem, Catch::EndsWith("No space left on device"));
  saver.begin(state_of(2), manifest_of(2), [] {});
  CHECK(saver.result(true)->path == home / "c/step-00000002");
  CHECK_FALSE(saver.result(true));
}

TEST_CASE("retention counts by number, keeps what it is told to, and touches nothing else", "[unit]") {
  const TemporaryFolder home;
  const std::string folder = home / "c";
  for (const int64_t step : {9'900, 9'950, 10'000, 100'000'000}) save(folder, step);
  const auto left = [&] {
    std::vector<int64_t> steps;
    for (const Entry& entry : list_checkpoints(folder)) steps.push_back(entry.step);
    return steps;
  };
  // Not ours: other names, another run's, one that is broken.
  fs::create_directories(folder + "/step-7");
  fs::create_directories(folder + "/my-step-00000001");
  std::ofstream(folder + "/step-00000003.txt") << "";
  fs::create_directories(folder + "/step-00000005");
  std::ofstream(folder + "/step-00000005/manifest.json") << "{}";
  Manifest other = manifest_of(200'000'000);
  other.run = std::string(32, 'b');
  Staging staging;
  const State of_other = state_of(4);
  commit(folder, staging.take(of_other), other, Verify::full);
  const size_t before = names(folder).size();
  const std::set<int64_t> all{9'900, 9'950, 10'000, 100'000'000};

  CHECK(retain(folder, run_a, {.keep_last = 4}, all).empty());
  CHECK(retain(folder, run_a, {.keep_last = 2, .keep_every = 9'900}, all) == std::vector<std::string>{folder + "/step-00009950"});
  CHECK(left() == std::vector<int64_t>{5, 9'900, 10'000, 100'000'000, 200'000'000});
  CHECK(retain(folder, run_a, {.keep_last = 0}, all) == std::vector<std::string>{folder + "/step-00009900"});  // two stay, whatever is asked
  CHECK(left() == std::vector<int64_t>{5, 10'000, 100'000'000, 200'000'000});
  CHECK(names(folder).size() == before - 2);
  CHECK(newest_step(folder) == 100'000'000);  // the other run's higher step does not win
}

TEST_CASE("what only looks sound is not counted: a newer one that was passed over, an older one that is damaged inside", "[unit]") {
  const TemporaryFolder home;
  const std::string folder = home / "c";
  for (int64_t step = 1; step <= 4; ++step) save(folder, step);
  const std::string file = folder + "/step-00000004/weights.safetensors";
  std::string bytes = files::read(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
  fs::copy(folder + "/step-00000001", folder + "/step-00000002.copy", fs::copy_options::recursive);
  fs::remove_all(folder + "/step-00000002");
  fs::rename(folder + "/step-00000002.copy", folder + "/step-00000002");  // by its name of step 2, by its manifest of step 1
  // A run goes on from 3, since 4 is damaged, and stops right after: whatever it keeps, 3 is among it, with what it saved itself.
  Saver saver(folder, {.keep_last = 2}, /*verified=*/3);
  save(folder, 10);
  fs::rename(folder + "/step-00000010", folder + "/step-00000009");
  saver.begin(state_of(5), manifest_of(5), [] {});
  REQUIRE(saver.result(true)->path == folder + "/step-00000005");
  std::vector<int64_t> steps;
  for (const Entry& entry : list_checkpoints(folder)) steps.push_back(entry.step);
  CHECK(steps == std::vector<int64_t>{2, 3, 4, 5, 9});  // 1 went; what is not what it says it is, is nobody's to remove
  CHECK(newest_sound(folder, run_a, ignore)->manifest.step == 5);
}

TEST_CASE("a checkpoint of another run is neither gone on from nor written over", "[unit]") {
  const TemporaryFolder home;
  save(home / "c", 3);
  Manifest other = manifest_of(3);
  other.run = std::string(32, 'b');
  Staging staging;
  const State state = state_of(9);
  CHECK_THROWS_MATCHES(commit(home / "c", staging.take(state), other, Verify::full), MachineError,
                       Catch::Message(home / "c/step-00000003: is a checkpoint of another run"));
  CHECK(newest_step(home / "c") == 3);
}

TEST_CASE("what a user has put at a checkpoint's name is told of and not touched", "[unit]") {
  const TemporaryFolder home;
  const std::string path = home / "c/step-00000002";
  save(home / "c", 1);
  const int kind = GENERATE(0, 1, 2);
  CAPTURE(kind);
  if (kind == 0) std::ofstream(path) << "a file";
  if (kind == 1) fs::create_directory_symlink("step-00000001", path);
  if (kind == 2) {
    save(home / "c", 2);
    fs::resize_file(path + "/weights.safetensors", 3);  // ours and broken, but for the notes
    std::ofstream(path + "/notes") << "precious";
  }
  CHECK_THROWS_MATCHES(save(home / "c", 2), MachineError, Catch::Message(path + ": is in the way, and is not or not only a checkpoint of ours: move it away"));
  CHECK(fs::exists(fs::symlink_status(path)));
  if (kind == 2) CHECK(files::exists(path + "/notes"));
}

TEST_CASE("a state that is not finite is not saved, and takes no other checkpoint's place", "[unit]") {
  const TemporaryFolder home;
  Saver saver(home / "c", {.keep_last = 2});
  for (int64_t step = 1; step <= 5; ++step) {
    State state = state_of(static_cast<double>(step));
    if (step > 2) state.tensors[step % 2 == 0 ? "weights.matrix" : "optimizer.first.matrix"].view(-1)[34] = step == 3 ? HUGE_VAL : NAN;
    saver.begin(state, manifest_of(step), [] {});
    const auto result = saver.result(true);
    CHECK(result->not_finite == (step > 2));
    if (step == 4) CHECK(result->problem == "matrix of weights.safetensors holds numbers that are not finite");
  }
  CHECK(names(home / "c") == std::vector<std::string>{"step-00000001", "step-00000002"});
}

TEST_CASE("a disk that cannot be read makes one checkpoint pass over, not the program end", "[unit]") {
  const TemporaryFolder home;
  save(home / "c", 1);
  save(home / "c", 2);
  files::set_faults([&](const std::string& operation, const std::string& path) {
    return operation == "read" && path.find("step-00000002/weights") != std::string::npos ? EIO : 0;
  });
  std::string told;
  const auto newest = newest_sound(home / "c", run_a, [&](const std::string& note) { told += note; });
  files::set_faults({});
  REQUIRE(newest);
  CHECK(newest->manifest.step == 1);
  CHECK_THAT(told, Catch::Contains("tensor matrix: is damaged: ") && Catch::Contains("Input/output error"));
}

TEST_CASE("the best checkpoint stays, by the smallest loss or the largest accuracy", "[unit]") {
  for (const auto& [metric, best] : {std::pair<std::string, int64_t>{"valid.loss", 2}, {"valid.accuracy", 4}}) {
    const TemporaryFolder home;
    const double values[] = {0, 3, 1, 2, 9, 5, 6, 7};
    for (int64_t step = 1; step <= 7; ++step) {
      Manifest manifest = manifest_of(step);
      if (step != 3) manifest.metrics[metric] = values[step];  // one without an evaluation
      Staging staging;
      const State state = state_of(1);
      commit(home / "c", staging.take(state), manifest, Verify::none);
      retain(home / "c", run_a, {.keep_last = 2, .keep_best = metric}, {step});
    }
    std::vector<int64_t> steps;
    for (const Entry& entry : list_checkpoints(home / "c")) steps.push_back(entry.step);
    CHECK(steps == std::vector<int64_t>{best, 6, 7});
  }
}

TEST_CASE("every damage is found, named, and passed over for the one before", "[unit]") {
  const TemporaryFolder home;
  const std::string folder = home / "c", path = folder + "/step-00000002";
  save(folder, 1);
  save(folder, 2);
  std::map<std::string, std::string> whole;
  for (const std::string& name : names(path)) whole[name] = files::read(path + "/" + name);
  int cases = 0;
  const auto damage = [&](const std::string& name, const std::string& bytes) {
    ++cases;
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
    std::string told;
    const auto newest = newest_sound(folder, run_a, [&](const std::string& note) { told += note; });
    const bool found = newest && newest->manifest.step == 1 && told.find(path + "/" + name) != std::string::npos;
    if (!found) FAIL_CHECK(name << " of " << bytes.size() << " bytes: " << told);
    std::ofstream(path + "/" + name, std::ios::binary) << whole[name];
  };
  for (const auto& [name, bytes] : whole) {
    const size_t bit_step = name == manifest_name ? 5 : 1;  // every bit of the data, a fifth of the manifest's
    for (size_t bit = 0; bit < 8 * bytes.size(); bit += bit_step) {
      std::string flipped = bytes;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      damage(name, flipped);
    }
    for (size_t length = 0; length < bytes.size(); length += 7) damage(name, bytes.substr(0, length));
    damage(name, bytes + '\0');
    damage(name, bytes + bytes);
  }
  CHECK(cases >= 300);
  INFO("damages: " << cases);
  // Files of another step, swapped, and missing.
  for (const char* name : {"weights.safetensors", "optimizer.safetensors"}) damage(name, files::read(cat(folder, "/step-00000001/", name)));
  damage("weights.safetensors", whole["optimizer.safetensors"]);
  damage(manifest_name, files::read(cat(folder, "/step-00000001/", manifest_name)));  // sealed, but of another step
  for (const auto& [name, bytes] : whole) {
    fs::remove(path + "/" + name);
    CHECK(newest_step(folder) == 1);
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
  }
  CHECK(newest_step(folder) == 2);
}

}  // namespace quell
