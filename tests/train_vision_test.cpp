// What holds of training on images as it does on text, and what only images have: positions for another image size.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "support.h"
#include "train/session.h"
#include "train/step.h"
#include "train_support.h"

namespace quell {

TEST_CASE("of images, micro-batches change a step by rounding only", "[unit]") {
  const testing::TinyImages images;
  RunConfig config = testing::tiny_vision(images);
  config.precision = Precision::fp64;
  const auto gradients = [&](int64_t parts) {
    config.micro_batches = parts;
    Run run(config, {});
    train_step(run, 0, nullptr);
    return run.arena.gradients().clone();
  };
  const at::Tensor whole = gradients(1);
  REQUIRE(testing::largest(whole) > 0);
  for (const int64_t parts : {2, 8}) CHECK(testing::largest(gradients(parts) - whole) <= 1e-13 * testing::largest(whole));
}

TEST_CASE("weights of another image size start with their positions resampled, and with nothing else changed", "[unit]") {
  const testing::TinyImages images;
  RunConfig config = testing::tiny_vision(images);
  config.threads = 1;
  const std::string folder = images.folder() / "run";
  REQUIRE(run_training(config, {.folder = folder, .quiet = true}) == 0);
  auto& model = std::get<VitConfig>(config.model);
  model.init.from = folder;
  Run same(config, {});
  model.image = 24;
  Run larger(config, {});
  for (const Parameter& parameter : same.parameters) {
    INFO(parameter.name);
    const Parameter* other = larger.parameters.find(parameter.name);
    REQUIRE(other != nullptr);
    const at::Tensor expected = parameter.name == "position.weight" ? resample_positions(parameter.value, 36) : parameter.value;
    CHECK(at::equal(other->value, expected));
  }
  model.width = 64;
  CHECK_THROWS_AS(Run(config, {}), CheckpointError);
}

}  // namespace quell
