// `quell plan`: what it says without data, and that its numbers agree with each other and with the model.
#include <catch2/catch.hpp>

#include <sstream>

#include "base/error.h"
#include "nn/count.h"
#include "tools/plan.h"
#include "train_support.h"

namespace quell {
namespace {

RunConfig decoder_config() {
  RunConfig config;
  config.name = "planned";
  config.steps = 100;
  DecoderConfig model;
  model.vocabulary = 5000;
  model.context = 256;
  model.width = 256;
  model.layers = 6;
  model.heads = 4;
  config.model = model;
  config.data = TokenData{.train = "nowhere", .batch = 16};
  config.threads = 1;
  return config;
}

RunConfig vit_config() {
  RunConfig config;
  config.name = "planned";
  config.epochs = 3;
  VitConfig model;
  model.classes = 10;
  model.image = 64;
  model.patch = 8;
  config.model = model;
  config.data = ImageData{.train = "nowhere", .batch = 16};
  config.threads = 1;
  return config;
}

double peak(const RunConfig& config) { return total_of(memory_classes(config, 5000)); }

}  // namespace

TEST_CASE("the parts of a plan sum to the whole, and no data are needed", "[unit]") {
  for (const RunConfig& config : {decoder_config(), vit_config()}) {
    const Plan plan = make_plan(config, {.speed = "1T"});
    int64_t parameters = 0;
    for (const auto& [part, count] : plan.parts) parameters += count;
    CHECK(parameters == plan.parameters);
    CHECK(plan.parameters == count_parameters(config.model));
    double memory = 0;
    for (const MemoryClass& c : plan.memory) {
      INFO(c.name);
      CHECK(c.bytes >= 0);
      memory += c.bytes;
    }
    const Json json = json_of(plan);
    CHECK(json["memory"]["peak"] == memory);
    CHECK(plan.flops_per_step == 16 * flops_per_sample(config.model));
    CHECK(json["checkpoint"]["weights"] == 4.0 * static_cast<double>(parameters));
    CHECK(json["checkpoint"]["moments"] == 8.0 * static_cast<double>(parameters));
  }
}

TEST_CASE("frozen parameters have no moments on disk", "[unit]") {
  RunConfig config = decoder_config();
  config.optimizer.freeze = {"embedding.weight"};
  const Plan plan = make_plan(config, {.speed = "1T"});
  CHECK(plan.parameters - plan.trained == 5000 * 256);
  CHECK(plan.moments_on_disk == 8.0 * static_cast<double>(plan.trained));
  config.optimizer.freeze = {"nothing.*"};
  CHECK_THROWS_WITH(make_plan(config, {.speed = "1T"}), Catch::StartsWith("optimizer.freeze: no parameter matches nothing.*"));
}

TEST_CASE("steps, samples and time follow from the stated plan; passes from data that are there", "[unit]") {
  RunConfig config = decoder_config();
  config.tokens = 256 * 16 * 40 - 1;
  Plan plan = make_plan(config, {.speed = "10G"});
  CHECK(plan.steps == 40);
  CHECK(plan.seconds == 40 * plan.flops_per_step / 1e10);
  CHECK_FALSE(plan.epoch_samples);
  CHECK(json_of(plan)["passes"].is_null());

  // Epochs need the data's size, which a missing folder does not tell.
  config = decoder_config();
  config.steps.reset();
  config.epochs = 2;
  CHECK(make_plan(config, {.speed = "1T"}).steps == 0);
  CHECK(json_of(make_plan(config, {.speed = "1T"}))["steps"].is_null());
  const testing::TinyText text;
  testing::data_of(config).train = text.train();
  testing::model_of(config).context = 16;
  plan = make_plan(config, {.speed = "1T"});
  const Run run(config, {});
  CHECK(plan.steps == run.steps);
  CHECK(*plan.epoch_samples == epoch_samples(run.source));
  CHECK(json_of(plan)["passes"] == static_cast<double>(plan.steps * 16) / static_cast<double>(*plan.epoch_samples));
}

TEST_CASE("a vocabulary or classes that are left to the data must be stated", "[unit]") {
  RunConfig config = decoder_config();
  testing::model_of(config).vocabulary.reset();
  CHECK_THROWS_MATCHES(make_plan(config, {}), UsageError,
                       Catch::Message("model.vocabulary: left to the data, which a plan does not open; state it in the run file or add "
                                      "model.vocabulary=N"));
  config = vit_config();
  std::get<VitConfig>(config.model).classes.reset();
  CHECK_THROWS_WITH(make_plan(config, {}), Catch::StartsWith("model.classes: left to the data"));
}

TEST_CASE("each change that is offered fits, and no nearer value of its key does", "[unit]") {
  const RunConfig config = decoder_config();
  const double limit = 0.75 * peak(config);
  const std::vector<FittingChange> changes = fitting_changes(config, 5000, limit);
  REQUIRE(changes.size() >= 5);
  for (const FittingChange& change : changes) {
    INFO(change.setting);
    CHECK(change.bytes <= limit);
    const auto value = [&](const std::string& key) {
      return change.setting.starts_with(key) ? std::stoll(change.setting.substr(key.size())) : 0;
    };
    RunConfig changed = config, nearer = config;
    if (const int64_t layers = value("model.layers=")) {
      transformer(changed.model).layers = layers;
      transformer(nearer.model).layers = layers + 1;
    } else if (const int64_t parts = value("micro_batches=")) {
      changed.micro_batches = parts;
      nearer.micro_batches = parts / 2;
    } else if (const int64_t batch = value("data.batch=")) {
      batch_of(changed.data) = batch;
      batch_of(nearer.data) = batch + 1;
    } else {
      continue;
    }
    CHECK(peak(changed) == change.bytes);
    CHECK(peak(nearer) > limit);
  }
  CHECK(fitting_changes(config, 5000, 1e6).empty());
}

TEST_CASE("sizes and speeds are read with their units, and what is none is refused", "[unit]") {
  CHECK(parse_bytes("24GB", "--memory") == 24e9);
  CHECK(parse_bytes("1.5 GiB", "--memory") == 1.5 * 0x1p30);
  CHECK(parse_bytes("800000000", "--memory") == 8e8);
  CHECK(parse_count("10T", "--speed") == 1e13);
  CHECK(parse_count("3.5e12", "--speed") == 3.5e12);
  for (const char* text : {"", "GB", "24 GBs", "-1GB", "0", "nan", "inf", "1e999"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse_bytes(text, "--memory"), Catch::StartsWith("--memory: \"") && Catch::Contains("like 24GB"));
    CHECK_THROWS_WITH(parse_count(text, "--speed"), Catch::StartsWith("--speed: \""));
  }
}

TEST_CASE("a plan is shown in lines of at most 80 columns", "[unit]") {
  for (RunConfig config : {decoder_config(), vit_config()}) {
    transformer(config.model).layers = 96;
    transformer(config.model).width = 12288;
    transformer(config.model).heads = 96;
    batch_of(config.data) = 1000000000;
    for (const char* memory : {"", "24GB", "1000000TB"}) {
      std::istringstream lines(text_of(make_plan(config, {.memory = memory, .speed = "123.456G"})));
      for (std::string line; std::getline(lines, line);) {
        INFO(line);
        CHECK(line.size() <= 80);
      }
    }
  }
}

TEST_CASE("of several ranks a plan says what each holds and sends", "[unit]") {
  RunConfig config = decoder_config();
  const Plan one = make_plan(config, {.speed = "1T"}), four = make_plan(config, {.speed = "1T", .world = 4, .bandwidth = "1GB"});
  CHECK((one.world == 1 && one.sent_per_step == 0));
  CHECK(four.sent_per_step == 2 * 0.75 * 4 * static_cast<double>(four.trained));
  CHECK(four.send_seconds == four.sent_per_step / 1e9);
  CHECK((four.seconds == one.seconds / 4 && four.flops_per_step == one.flops_per_step && four.steps == one.steps));
  // Each computes a quarter of the samples, as a run of that batch would.
  batch_of(config.data) = 4;
  CHECK(total_of(four.memory) == peak(config));
  const std::string text = text_of(four);
  CHECK_THAT(text, Catch::Contains("world       4 ranks of 4 samples a step\n            each sends ") && Catch::Contains(" at the peak of each rank\n"));
  CHECK(json_of(four)["world"]["ranks"] == 4);
  CHECK(json_of(one)["world"]["send_seconds"].is_null());
  CHECK_THROWS_WITH(make_plan(decoder_config(), {.speed = "1T", .world = 3}), "--world 3: data.batch 16 is no multiple of world x micro_batches = 3");
}

}  // namespace quell
