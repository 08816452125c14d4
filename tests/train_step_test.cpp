// The step: sums and counts, micro-batches, auxiliary terms, bad steps.
#include <catch2/catch.hpp>

#include <cmath>

#include "support.h"
#include "train/step.h"
#include "train_support.h"

namespace quell {
namespace {

using testing::data_of;
using testing::model_of;
using testing::tiny_config;
using testing::TinyText;

at::Tensor gradients_after_one_step(RunConfig config) {
  Run run(config, {});
  train_step(run, 0, nullptr);
  return run.arena.gradients().clone();
}

std::vector<double> losses(RunConfig config, int64_t steps) {
  Run run(config, {});
  std::vector<double> result;
  for (int64_t step = 0; step < steps; ++step) result.push_back(train_step(run, step, nullptr).totals.objective());
  return result;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

}  // namespace

TEST_CASE("one micro-batch of eight, two of four and eight of one give the same gradients", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.precision = Precision::fp64;
  config.optimizer.clip.kind = ClipKind::none;
  model_of(config).attention.dropout = GENERATE(0.0, 0.3);
  model_of(config).dropout = model_of(config).attention.dropout;
  config.loss.z = 1e-3;
  const at::Tensor whole = gradients_after_one_step(config);
  REQUIRE(testing::largest(whole) > 1e-6);
  for (const int64_t parts : {2, 8}) {
    config.micro_batches = parts;
    const at::Tensor pieces = gradients_after_one_step(config);
    CHECK(testing::largest(pieces - whole) <= 1e-13 * testing::largest(whole));
  }
}

TEST_CASE("a coefficient of zero is equal in every bit to no term, and any other changes the objective", "[unit]") {
  const TinyText text;
  const RunConfig config = tiny_config(text);
  const at::Tensor plain = gradients_after_one_step(config);
  for (double LossConfig::*coefficient : {&LossConfig::z, &LossConfig::max_z, &LossConfig::label_smoothing}) {
    RunConfig with = config;
    with.loss.*coefficient = 0;
    CHECK(same_bits(gradients_after_one_step(with), plain));
    with.loss.*coefficient = 0.01;
    CHECK_FALSE(same_bits(gradients_after_one_step(with), plain));
  }
}

TEST_CASE("the same configuration gives the same bits, another seed others", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  const std::vector<double> first = losses(config, 4);
  CHECK(first == losses(config, 4));
  config.seed = 2;
  CHECK(first != losses(config, 4));
}

TEST_CASE("a step with a value that is not finite changes no value, no moment and no count, and is named", "[unit]") {
  const TinyText text;
  Run run(tiny_config(text), {});
  train_step(run, 0, nullptr);
  const State before = copied(run.optimizer.state());
  Parameter* broken = run.parameters.find("blocks.1.mlp.up.weight");
  REQUIRE(broken != nullptr);
  {
    at::NoGradGuard no_gradients;
    broken->value.view(-1)[3] = NAN;
  }
  const at::Tensor values = run.arena.values().clone();
  const StepResult result = train_step(run, 1, nullptr);
  CHECK(result.bad.item<bool>());
  CHECK(std::isnan(result.totals.objective()));
  CHECK(same_bits(run.arena.values(), values));
  const State after = run.optimizer.state();
  CHECK(after.integers == before.integers);
  for (const auto& [name, moment] : before.tensors) CHECK(same_bits(after.tensors.at(name), moment));
  CHECK(first_bad_tensor(run, 1) == "the value of blocks.1.mlp.up.weight");
}

TEST_CASE("what overflows in the forward pass is named by its block", "[unit]") {
  const TinyText text;
  Run run(tiny_config(text), {});
  {
    at::NoGradGuard no_gradients;
    run.parameters.find("blocks.1.mlp.down.weight")->value.fill_(3e38);
  }
  CHECK(train_step(run, 0, nullptr).bad.item<bool>());
  CHECK(first_bad_tensor(run, 0) == "the output of blocks.1");
}

TEST_CASE("frozen parameters get no gradient, no moment and keep their values", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.optimizer.freeze = {"blocks.0.*", "embedding.weight"};
  Run run(config, {});
  const at::Tensor frozen = run.parameters.find("blocks.0.mlp.up.weight")->value.clone();
  const at::Tensor trained = run.parameters.find("blocks.1.mlp.up.weight")->value.clone();
  train_step(run, 0, nullptr);
  CHECK(same_bits(run.parameters.find("blocks.0.mlp.up.weight")->value, frozen));
  CHECK_FALSE(same_bits(run.parameters.find("blocks.1.mlp.up.weight")->value, trained));
  const State state = run.optimizer.state();
  CHECK(state.tensors.contains("first.blocks.1.mlp.up.weight"));
  CHECK_FALSE(state.tensors.contains("first.blocks.0.mlp.up.weight"));
}

TEST_CASE("every precision trains: bf16 follows fp32 roughly, fp64 closely", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  const std::vector<double> fp32 = losses(config, 8);
  config.precision = Precision::fp64;
  const std::vector<double> fp64 = losses(config, 8);
  config.precision = Precision::bf16;
  const std::vector<double> bf16 = losses(config, 8);
  REQUIRE(fp64.back() < fp64.front() - 0.3);
  // fp32 rounds at 6e-8, bf16 at 4e-3 relative; eight steps multiply that by far less than a hundred.
  CHECK(std::abs(fp32.back() - fp64.back()) < 100 * 6e-8 * fp64.back() * 8);
  CHECK(std::abs(bf16.back() - fp64.back()) < 4e-3 * fp64.back() * 8);
  CHECK(bf16 != fp32);
}

TEST_CASE("training again and again on two samples learns them by heart", "[unit]") {
  const TinyText text;
  RunConfig config = tiny_config(text);
  config.steps = 300;
  config.optimizer.schedule.kind = ScheduleKind::constant;
  config.optimizer.weight_decay = 0;
  data_of(config).batch = 2;
  Run run(config, {.overfit = 2, .progress = {}});
  double loss = 0;
  for (int64_t step = 0; step < 300; ++step) loss = train_step(run, step, nullptr).totals.cross_entropy();
  CHECK(loss < 0.02);
}

}  // namespace quell
