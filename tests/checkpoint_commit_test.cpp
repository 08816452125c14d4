// What a save leaves on a disk that fails, on a machine that loses its power, beside a training that goes on.
#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/text.h"
#include "cases.h"
#include "checkpoint/saver.h"
#include "power_loss.h"
#include "saves.h"
#include "temporary.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Cases;
using testing::ignore;
using testing::manifest_of;
using testing::newest_step;
using testing::PowerLoss;
using testing::run_a;
using testing::run_b;
using testing::save;
using testing::state_of;
using testing::TemporaryFolder;

// Saves `state` with the n-th fsync failing, and those after it as they do; false where there are not so many.
bool fails_at_sync(int n, const State& state) {
  CAPTURE(n);
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
    save(home / "c", manifest_of(2), state);
  } catch (const MachineError&) {
    failed = true;
  }
  files::set_faults({});
  if (!failed) return false;
  // Nothing is written any more; what has been is removed, the checkpoint too that had its name already.
  for (const std::string& operation : after) CHECK_FALSE((operation.starts_with("open ") || operation.starts_with("write ")));
  CHECK(files::list(home / "c") == std::vector<std::string>{"step-00000001"});
  return true;
}

}  // namespace

TEST_CASE("what is saved is read back, with views, numbers and metrics", "[unit]") {
  const TemporaryFolder home;
  CHECK(save(home / "c", 12) == home / "c/step-00000012");
  CHECK(newest_step(home / "c") == 12);
  CHECK(files::list(home / "c") == std::vector<std::string>{"step-00000012"});
  CHECK(files::list(home / "c/step-00000012") == std::vector<std::string>{"manifest.json", "optimizer.safetensors", "weights.safetensors"});
}

TEST_CASE("after any failure of any operation the old checkpoint is there, nothing false is said, and the next save succeeds", "[unit][K3]") {
  Cases cases("K3");
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
      cases.add();
      CAPTURE(reason, n, operation, message);
      CHECK(newest_step(folder) == (saved ? 2 : 1));
      CHECK(saved == (operation == "write" && (reason == EINTR || reason == -1)));  // those go on; all others give up
      if (!saved) CHECK(message.starts_with(folder));
      remove_leftovers(folder, ignore);
      CHECK(files::list(folder).size() == (newest_step(folder) == 2 ? 2u : 1u));
      save(folder, 3);
      CHECK(newest_step(folder) == 3);
    }
  }
}

TEST_CASE("a file whose fsync failed is never tried again, though it would succeed", "[unit][K5]") {
  Cases cases("K5");
  for (const bool with_average : {false, true}) {
    State state = state_of(2);
    if (with_average) state.tensors["ema.matrix"] = at::ones({5, 7});
    for (int n = 0; fails_at_sync(n, state); ++n) cases.add();
  }
  CHECK(cases.done() >= 10);
}

TEST_CASE("a loss of power at any moment leaves the old checkpoint or the new one, whole", "[unit][K4]") {
  const uint32_t seeds = testing::in_full() ? 100 : 22;
  Cases cases("K4");
  const CheckpointConfig keep{.keep_last = 2};
  int moments = 0;
  for (bool ran_through = false; !ran_through; ++moments) {
    for (uint32_t seed = 0; seed < seeds; ++seed, cases.add()) {
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
      for (const std::string& name : files::list(home / "left")) CHECK(name.starts_with("step-"));
    }
  }
  CHECK(cases.done() >= (testing::in_full() ? 2000 : 300));
}

TEST_CASE("a save holds what the state was when it began, whatever training does meanwhile", "[unit][R6]") {
  const TemporaryFolder home;
  Saver saver(home / "c", {.keep_last = 1000});
  State state;
  const at::Tensor flat = at::zeros({300'000});
  state.tensors["weights.a"] = flat.narrow(0, 16, 100'000).view({100, 1000});
  state.tensors["weights.b"] = flat.narrow(0, 100'032, 99'999);
  for (Cases cases("R6", 10, 100); cases.next();) {
    const int64_t step = cases.number() + 1;
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

TEST_CASE("a checkpoint of another run is neither gone on from nor written over", "[unit]") {
  const TemporaryFolder home;
  save(home / "c", 3);
  const Manifest other = manifest_of(3, run_b);
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
  CHECK(files::list(home / "c") == std::vector<std::string>{"step-00000001", "step-00000002"});
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

}  // namespace quell
