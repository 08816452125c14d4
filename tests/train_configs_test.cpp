// Every file in configs/ loads and trains two steps at a reduced size, on text of our own.
#include <catch2/catch.hpp>

#include <filesystem>

#include "config/load.h"
#include "train/session.h"
#include "train/step.h"
#include "train_support.h"

namespace quell {

TEST_CASE("every configuration that is shipped loads and trains two steps with two layers", "[unit]") {
  const testing::TinyText text;
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(QUELL_SOURCE) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path().filename().string());
    ++count;
    std::vector<config::Override> overrides;
    for (const char* setting : {"model.layers=2", "model.context=32", "micro_batches=1", "data.batch=2", "data.type=auto", "steps=2",
                                "threads=1", "evaluate.batches=1", "model.vocabulary=1024"}) {
      overrides.push_back({setting, false});
    }
    overrides.push_back({"data.train=" + text.train(), false});
    overrides.push_back({"evaluate.sets=[{name: valid, data: " + text.valid() + "}]", false});
    const auto config = config::load<RunConfig>(config::Source::from_file(entry.path().string(), overrides));
    Run run(config, {});
    for (const int64_t step : {0, 1}) {
      const StepResult result = train_step(run, step, nullptr);
      CHECK_FALSE(result.bad.item<bool>());
      CHECK(result.totals.objective() < std::log(1024) + 3);
    }
    CHECK(run.optimizer.updates() == 2);
  }
  CHECK(count >= 8);
}

}  // namespace quell
