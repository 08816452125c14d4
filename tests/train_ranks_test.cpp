// Several ranks compute what one computes: the same loss, gradients, norm and moments at one global batch, the same samples in the same
// order, the same evaluation. The hidden cases are what one rank does; each builds the runs of one process beside its own.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <random>

#include "base/error.h"
#include "dist/rendezvous.h"
#include "dist/same.h"
#include "ranks.h"
#include "resumed.h"
#include "train/evaluate.h"
#include "train/step.h"

namespace quell {
namespace {

using testing::in_ranks;
using testing::tiny_config;
using testing::tiny_vision;
using testing::TinyImages;
using testing::TinyText;

World join() {
  const Variables variables = variables_of_process();
  return join_world(membership_of(variables), variables, std::chrono::minutes(1)).world;
}

// Prompts and answers of all lengths in documents of their own, so that windows, micro-batches and ranks differ in what is scored.
std::string uneven_text(const TinyText& text) {
  std::ofstream out(text.folder() / "uneven.jsonl");
  for (int i = 0; i < 400; ++i) {
    const auto prompt = static_cast<size_t>(1 + i * i % 23), answer = static_cast<size_t>(1 + i * 7 % 11);
    out << R"({"prompt": ")" << std::string(prompt, static_cast<char>('a' + i % 3)) << R"(", "answer": ")" << std::string(answer, static_cast<char>('c' + i % 5)) << "\"}\n";
  }
  out.close();
  prepare_tokens({.files = {text.folder() / "uneven.jsonl"}, .out = text.folder() / "uneven", .tokenizer = "char", .valid = 0.1}, {});
  return text.folder() / "uneven";
}

// With every auxiliary loss, a learned scale and norm weights, dropout, and widths that no world size divides.
RunConfig decoder(const TinyText& text) {
  RunConfig config = tiny_config(text);
  const std::string set = uneven_text(text);
  testing::data_of(config) = TokenData{.train = set + "/train", .batch = 12, .cross_documents = false};
  config.evaluate.sets = {{"valid", set + "/valid"}};
  DecoderConfig& model = testing::model_of(config);
  model.width = 36;
  model.heads = 3;
  model.mlp.width = 50;
  model.output.tied = true;  // a gradient of two parts
  model.dropout = 0.1;
  model.attention.qk_norm = {.kind = NormKind::rmsnorm, .weight = NormWeight::per_head};
  model.attention.scale = {.kind = ScaleKind::learned, .per_head = true, .init = 3.0};
  config.loss = {.z = 1e-3, .max_z = 1e-3, .label_smoothing = 0.1};
  return config;
}

RunConfig vision(const TinyImages& images) {
  RunConfig config = tiny_vision(images);
  batch_of(config.data) = 12;
  std::get<ImageData>(config.data).augment = {.flip = true, .crop_padding = 2, .random_resized_crop = {}};
  transformer(config.model).attention.qk_norm.kind = NormKind::layernorm;
  transformer(config.model).drop_path = 0.2;
  config.loss = {.z = 1e-3, .max_z = 1e-3, .label_smoothing = 0.1};
  return config;
}

RunConfig exact(RunConfig config, Precision precision) {
  config.precision = precision;
  config.steps = 10;
  config.optimizer.eps = 1e-3;  // with 1e-8 Adam turns the rounding noise of a zero gradient into steps
  return config;
}

// max |a - b| / max |b|
double distance(const at::Tensor& a, const at::Tensor& b) {
  const double largest = b.abs().max().item<double>();
  return largest == 0 ? a.abs().max().item<double>() : (a - b).abs().max().item<double>() / largest;
}

struct Layout {
  std::string name;
  Run run;
  Layout(const std::string& layout, RunConfig config, int64_t parts, const World& world) : name(layout), run(with_parts(std::move(config), parts), {.world = world}) {}
  static RunConfig with_parts(RunConfig config, int64_t parts) {
    config.micro_batches = parts;
    return config;
  }
};

// Every layout makes each step from the reference's state. `rounding`: of the type, in units of the largest value.
void compare_steps(const RunConfig& config, const World& world, double rounding) {
  Layout reference("one rank", config, 1, {});
  Layout parts("two micro-batches", config, 2, {}), ranks("ranks", config, 1, world), both("ranks with micro-batches", config, 3, world);
  bool has_scale = false, has_norm = false;
  for (int64_t step = 0; step < *config.steps; ++step) {
    const State before = copied(state_of(reference.run));
    StepResult expected = train_step(reference.run, step, nullptr);
    expected.totals.reduce({});
    for (Layout* layout : {&parts, &ranks, &both}) {
      CAPTURE(step, layout->name, world.rank());
      set_state(layout->run, before);
      StepResult result = train_step(layout->run, step, nullptr);
      result.totals.reduce(layout->run.world);
      CHECK(result.totals.targets() == expected.totals.targets());
      CHECK(std::abs(result.totals.objective() / expected.totals.objective() - 1) < rounding);
      CHECK(std::abs(result.norm.item<double>() / expected.norm.item<double>() - 1) < rounding);
      for (const Parameter& parameter : reference.run.parameters) {
        CAPTURE(parameter.name);
        const Parameter& same = *layout->run.parameters.find(parameter.name);
        CHECK(distance(layout->run.arena.view(layout->run.arena.gradients(), same), reference.run.arena.view(reference.run.arena.gradients(), parameter)) < rounding);
        has_scale |= parameter.role == Role::scale;
        has_norm |= parameter.role == Role::qk_norm_weight;
      }
    }
  }
  CHECK(has_norm);
  CHECK((has_scale || std::holds_alternative<VitConfig>(config.model)));
}

// Ten steps by themselves: what is left of rounding after them, in values and moments.
void compare_runs(const RunConfig& config, const World& world, double rounding) {
  Layout reference("one rank", config, 1, {}), ranks("ranks", config, 1, world);
  for (int64_t step = 0; step < *config.steps; ++step) {
    train_step(reference.run, step, nullptr);
    train_step(ranks.run, step, nullptr);
  }
  const State expected = state_of(reference.run), found = state_of(ranks.run);
  CHECK(found.integers == expected.integers);
  for (const auto& [name, tensor] : expected.tensors) {
    CAPTURE(name);
    CHECK(distance(found.tensors.at(name), tensor) < rounding);
  }
}

void compare(const RunConfig& config, const World& world) {
  compare_steps(exact(config, Precision::fp64), world, 1e-12);
  // Layouts differ in the order in which what at most 192 targets give is added: each addition rounds by half an ulp of a sum.
  compare_steps(exact(config, Precision::fp32), world, 192 * 0x1p-23);
  compare_runs(exact(config, Precision::fp64), world, 1e-10);
}

}  // namespace

TEST_CASE("rank: steps of a decoder", "[.]") {
  const World world = join();
  const TinyText text;
  compare(decoder(text), world);
}

TEST_CASE("rank: steps of a vision transformer", "[.]") {
  const World world = join();
  const TinyImages images;
  compare(vision(images), world);
}

TEST_CASE("rank: samples", "[.]") {
  const World world = join();
  const TinyText text;
  RunConfig config = tiny_config(text);
  batch_of(config.data) = 12;
  for (const int64_t parts : {1, 3}) {
    Layout layout("ranks", config, parts, world);
    for (const int64_t step : {0, 1, 700, 1'000'000}) {
      at::Tensor seen = at::zeros({12}, at::kLong), count = at::zeros({12}, at::kLong);
      int64_t row = world.rank() * 12 / world.size();
      for (const Batch& batch : layout.run.batches(step)) {
        for (int64_t i = 0; i < batch.samples_B.numel(); ++i, ++row) {
          seen[row] = batch.samples_B[i];
          count[row] += 1;
        }
      }
      world.sum(seen);
      world.sum(count);
      CHECK(at::equal(seen, at::arange(12 * step, 12 * (step + 1), at::kLong)));
      CHECK(count.eq(1).all().item<bool>());
    }
  }
}

TEST_CASE("rank: evaluation", "[.]") {
  const World world = join();
  const TinyText text;
  const TinyImages images;
  for (RunConfig config : {exact(decoder(text), Precision::fp64), exact(vision(images), Precision::fp64)}) {
    // Sets of 2 and of 7 times a batch, and one with a rest, which may leave ranks without a sample.
    for (const int64_t batch : {12, 20, 28, 4}) {
      for (const bool all : {false, true}) {
        batch_of(config.data) = batch;
        config.evaluate.batches = all ? std::nullopt : Optional<int64_t>(2);
        if (batch % world.size() != 0) continue;
        CAPTURE(batch, all, world.rank());
        Layout one("one rank", config, 1, {}), ranks("ranks", config, 1, world);
        const Evaluation expected = evaluate(one.run).at(0), found = evaluate(ranks.run).at(0);
        CHECK(found.totals.targets() == expected.totals.targets());
        CHECK(found.totals.accuracy() == expected.totals.accuracy());
        CHECK(std::abs(found.totals.cross_entropy() / expected.totals.cross_entropy() - 1) < 1e-12);
        REQUIRE(found.health.layers.size() == expected.health.layers.size());
        for (size_t layer = 0; layer < found.health.layers.size(); ++layer) {
          const HealthReport::Layer &a = found.health.layers[layer], &b = expected.health.layers[layer];
          REQUIRE((a.logit_max.size() == b.logit_max.size() && a.entropy.size() == b.entropy.size()));
          for (size_t head = 0; head < a.logit_max.size(); ++head) {
            CHECK(a.logit_max[head] == Approx(b.logit_max[head]).epsilon(1e-6));
            CHECK(a.entropy[head] == Approx(b.entropy[head]).epsilon(1e-6));
          }
        }
      }
    }
  }
}

TEST_CASE("rank: flipped bits", "[.]") {
  const World world = join();
  const TinyText text;
  Layout layout("ranks", exact(decoder(text), Precision::fp32), 1, world);
  train_step(layout.run, 0, nullptr);
  CHECK_FALSE(first_difference(world, model_state(layout.run)));
  std::mt19937 draw(1);  // the same on all ranks
  const State state = model_state(layout.run);
  for (int i = 0; i < 20; ++i) {
    auto tensor = state.tensors.begin();
    std::advance(tensor, draw() % state.tensors.size());
    const auto rank = static_cast<int>(draw() % static_cast<unsigned>(world.size()));
    const int64_t element = draw() % static_cast<unsigned>(tensor->second.numel());
    const int32_t bit = static_cast<int32_t>(1u << draw() % 32);
    const auto flip = [&] {
      if (world.rank() == rank) tensor->second.view(-1).view(at::kInt)[element].bitwise_xor_(bit);
    };
    flip();
    const std::optional<Difference> found = first_difference(world, model_state(layout.run));
    CAPTURE(tensor->first, rank, element, bit);
    REQUIRE(found);
    CHECK(found->tensor == tensor->first);
    // Two cannot say which of them is wrong.
    CHECK(found->ranks == (world.size() == 2 ? std::vector<int>{0, 1} : std::vector<int>{rank}));
    flip();
  }
  CHECK_FALSE(first_difference(world, model_state(layout.run)));
}

TEST_CASE("rank: a run with a flipped bit", "[.]") {
  const World world = join();
  const TinyText text;
  RunConfig config = exact(decoder(text), Precision::fp32);
  config.micro_batches = 1;
  config.parallel.verify_every = 3;
  Run run(config, {.world = world});
  if (world.rank() == 1) run.parameters.find("blocks.1.mlp.up.weight")->value.detach().view(-1)[5] += 1e-6;
  RunFolder none;
  Report report(none, run.config, {.peak_flops = 0, .quiet = true});
  Saves saves(none, run.config);
  CHECK_THROWS_MATCHES(train(run, report, saves), NumericsError, Catch::Predicate<NumericsError>([](const NumericsError& problem) {
                         return std::string(problem.what()).find("is not the same on all ranks; they differ on ranks 0, 1, found after step 3") != std::string::npos;
                       }));
}

TEST_CASE("one bit that flipped on one rank is found, with the tensor and the rank", "[multi]") {
  for (const int size : {2, 4}) in_ranks(size, "rank: flipped bits");
}

TEST_CASE("a run ends where its ranks have come to differ", "[multi]") { in_ranks(2, "rank: a run with a flipped bit"); }

TEST_CASE("at one global batch ranks, micro-batches and one process make the same steps of a decoder", "[multi]") {
  for (const int size : {2, 4}) in_ranks(size, "rank: steps of a decoder");
}

TEST_CASE("at one global batch ranks, micro-batches and one process make the same steps of a vision transformer", "[multi]") {
  for (const int size : {2, 4}) in_ranks(size, "rank: steps of a vision transformer");
}

TEST_CASE("any number of ranks sees the same samples in the same order, each once", "[multi]") {
  for (const int size : {1, 2, 4}) in_ranks(size, "rank: samples");
}

TEST_CASE("an evaluation over ranks is that of one process, also where they do not divide the set", "[multi]") {
  for (const int size : {2, 4}) in_ranks(size, "rank: evaluation");
}

}  // namespace quell
