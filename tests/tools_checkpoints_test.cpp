// What is said of checkpoints: listed, verified, compared, pruned.
#include <ATen/ATen.h>
#include <catch2/catch.hpp>

#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoint/commit.h"
#include "config/print.h"
#include "temporary.h"
#include "tools/checkpoints.h"
#include "train/config.h"

namespace quell {
namespace {

using testing::TemporaryFolder;

RunConfig config_with(double lr) {
  RunConfig config;
  config.name = "test";
  config.steps = 10;
  std::get<TokenData>(config.data).train = "text/train";
  config.optimizer.lr = lr;
  return config;
}

std::string save(const std::string& folder, int64_t step, const at::Tensor& matrix, double lr = 0.1) {
  State state;
  state.tensors["weights.matrix"] = matrix;
  state.tensors["weights.bias"] = at::zeros({3});
  Manifest manifest;
  manifest.step = step;
  manifest.save = std::string(step < 10 ? 31 : 30, '0') + std::to_string(step);
  manifest.run = std::string(32, 'a');
  manifest.config = config::print(config_with(lr));
  manifest.integers["run.step"] = 1;
  manifest.numbers["report.seconds"] = static_cast<double>(step);
  manifest.metrics = {{"valid.loss", 1.25}, {"valid.accuracy", 0.5}};
  Staging staging;
  return commit(folder, staging.take(state), manifest, Verify::full);
}

void damage(const std::string& file) {
  std::string bytes = files::read(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(file, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("a run's checkpoints are listed with size and last evaluation, broken ones as such", "[unit]") {
  const TemporaryFolder home;
  const std::string folder = home / "checkpoints";
  save(folder, 5, at::ones({2, 3}));
  save(folder, 10, at::ones({2, 3}));
  files::remove_all(folder + "/step-00000010/weights.safetensors");
  const Answer answer = list_checkpoints_of(home.path());
  CHECK(answer.yes);
  CHECK_THAT(answer.text, Catch::Contains("         5") && Catch::Contains("valid.accuracy 0.50000  valid.loss 1.2500\n") &&
                              Catch::Contains("        10              not sound: see quell checkpoint verify\n"));
  CHECK(answer.json[0]["step"] == 5);
  CHECK(answer.json[1].contains("problem"));
  CHECK_THROWS_AS(list_checkpoints_of(home / "none"), UsageError);
  CHECK_THROWS_AS(list_checkpoints_of(folder + "/step-00000005"), UsageError);
}

TEST_CASE("verify answers no where a bit is wrong, and names file and tensor", "[unit]") {
  const TemporaryFolder home;
  const std::string path = save(home / "checkpoints", 5, at::ones({2, 3}));
  CHECK(verify_checkpoints(home.path()).yes);
  std::ofstream(path + "/notes.txt") << "mine";
  CHECK_THAT(verify_checkpoints(path).text, Catch::Contains(": sound, ") && Catch::Contains("notes.txt is in the folder, but no part of the checkpoint"));
  damage(path + "/weights.safetensors");
  const Answer answer = verify_checkpoints(home.path());
  CHECK_FALSE(answer.yes);
  CHECK(answer.text == cat(path, ": not sound\n  ", path, "/weights.safetensors: tensor matrix: is damaged: its digest is not the manifest's\n"));
  CHECK(answer.json[0]["sound"] == false);
}

TEST_CASE("diff tells how far tensors are apart, where it begins, and what the run files say otherwise", "[unit]") {
  const TemporaryFolder home;
  at::Tensor a = at::ones({2, 3}), b = a.clone();
  const std::string first = save(home / "a", 5, a);
  CHECK(diff_checkpoints(first, save(home / "same", 6, b)).yes);  // the clock may differ
  b[1][0] = std::nextafter(1.0f, 2.0f);
  b[1][2] = 1.5f;
  const Answer answer = diff_checkpoints(first, save(home / "b", 5, b, 0.2));
  CHECK_FALSE(answer.yes);
  CHECK(answer.text == cat(first, " | ", home / "b/step-00000005", " differ:\n",
                           "  weights.matrix: 2 of 6 differ, by 0.500 = 4194304 ulp at most; first [1, 0]\n"
                           "  optimizer.lr: 0.1 | 0.2\n"));
  CHECK(answer.json["tensors"]["weights.matrix"]["first"] == 3);
  const Answer shapes = diff_checkpoints(first, save(home / "c", 5, at::ones({3, 3})));
  CHECK_THAT(shapes.text, Catch::Contains("weights.matrix: Float [2, 3] | Float [3, 3]\n"));
}

TEST_CASE("inspect lists every tensor; prune removes what need not stay and says so", "[unit]") {
  const TemporaryFolder home;
  const std::string folder = home / "checkpoints";
  for (int64_t step = 1; step <= 4; ++step) save(folder, step, at::ones({2, 3}));
  CHECK_THROWS_AS(prune_checkpoints(home.path(), {.keep_last = 3}, true), UsageError);  // whose run is it?
  std::ofstream(home / "run.json") << "{\"run\": \"" << std::string(32, 'a') << "\"}";
  const Answer inspected = inspect_checkpoint(home.path());
  CHECK_THAT(inspected.text, Catch::StartsWith(folder + "/step-00000004\n") && Catch::Contains("    matrix ") && Catch::Contains("F32  [2, 3]\n"));
  CHECK(inspected.json["files"][0]["tensors"].size() == 2);
  CHECK(prune_checkpoints(home.path(), {.keep_last = 3}, /*dry=*/true).text == folder + "/step-00000001: would go\n");
  CHECK(files::exists(folder + "/step-00000001"));
  CHECK(prune_checkpoints(home.path(), {.keep_last = 3}, false).text == folder + "/step-00000001: removed\n");
  CHECK_FALSE(files::exists(folder + "/step-00000001"));
  CHECK(prune_checkpoints(home.path(), {.keep_last = 3}, false).text == "nothing to remove\n");
}

}  // namespace quell
