// Every file in configs/ loads and trains two steps at a reduced size, on text of our own.
#include <catch2/catch.hpp>

#include <filesystem>

#include "base/files.h"
#include "config/load.h"
#include "train/session.h"
#include "train/step.h"
#include "train_support.h"

namespace quell {

TEST_CASE("every configuration that is shipped loads and trains two steps with two layers", "[unit]") {
  const testing::TinyText text;
  const testing::TinyImages images;
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(QUELL_SOURCE) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path().filename().string());
    ++count;
    const bool vision = files::read(entry.path().string()).find("kind: vit") != std::string::npos;
    std::vector<config::Override> overrides;
    for (const char* setting : {"model.layers=2", "micro_batches=1", "data.batch=2", "steps=20", "optimizer.schedule.warmup=0", "threads=1", "evaluate.batches=1"}) {
      overrides.push_back({setting, false});
    }
    for (const char* setting : {"model.context=32", "data.type=auto", "model.vocabulary=1024"}) {
      if (!vision) overrides.push_back({setting, false});
    }
    // Full widths do not fit: a sixteenth of it, with fewer patches and classes.
    for (const char* setting : {"model.width=384", "model.heads=3", "model.mlp.width=1536", "model.image=56", "model.classes=8"}) {
      if (entry.path().stem() == "vit_22b") overrides.push_back({setting, false});
    }
    overrides.push_back({"data.train=" + (vision ? images.train() : text.train()), false});
    overrides.push_back({"evaluate.sets=[{name: valid, data: " + (vision ? images.test() : text.valid()) + "}]", false});
    const auto config = config::load<RunConfig>(config::Source::from_file(entry.path().string(), overrides));
    Run run(config, {});
    const int64_t steps = entry.path().stem() == "vit_22b" ? 20 : 2;
    double first = 0, last = 0;
    for (int64_t step = 0; step < steps; ++step) {
      const StepResult result = train_step(run, step, nullptr);
      CHECK_FALSE(result.bad.item<bool>());
      if (steps == 2) CHECK(result.totals.objective() < std::log(1024) + 3);
      last = result.totals.objective();
      if (step == 0) first = last;
    }
    CHECK(run.optimizer.updates() == steps);
    if (steps > 2) CHECK(last < first);
  }
  CHECK(count >= 14);
}

}  // namespace quell
