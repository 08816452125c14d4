// Every file in configs/ loads and trains two steps at a reduced size, on text or images of our own.
#include <catch2/catch.hpp>

#include <filesystem>

#include "base/files.h"
#include "config/load.h"
#include "train/session.h"
#include "train/step.h"
#include "train_support.h"

namespace quell {
namespace {

// Text and images that stand in for what the files name.
class SmallData {
 public:
  RunConfig load(const std::filesystem::path& file) const {
    const std::string written = files::read(file.string());
    std::vector<std::string> settings{"model.layers=2", "micro_batches=1",           "data.batch=2",      "steps=20",
                                      "threads=1",      "optimizer.schedule.warmup=0", "evaluate.batches=1"};
    const auto add = [&](std::initializer_list<std::string> more) { settings.insert(settings.end(), more); };
    if (written.find("kind: vit") != std::string::npos) {
      add({"data.train=" + images_.train(), "evaluate.sets=[{name: valid, data: " + images_.test() + "}]"});
    } else if (written.find("kind: copy") == std::string::npos) {
      add({"data.train=" + text_.train(), "evaluate.sets=[{name: valid, data: " + text_.valid() + "}]"});
      add({"model.context=32", "data.type=auto", "model.vocabulary=1024"});
    }
    // Its full width does not fit: a sixteenth of it, with fewer patches and classes.
    if (file.stem() == "vit_22b") {
      add({"model.width=384", "model.heads=3", "model.mlp.width=1536", "model.image=56", "model.classes=8"});
    }
    std::vector<config::Override> overrides;
    for (const std::string& setting : settings) overrides.push_back({setting, false});
    return config::load<RunConfig>(config::Source::from_file(file.string(), overrides));
  }

 private:
  testing::TinyText text_;
  testing::TinyImages images_;
};

}  // namespace

TEST_CASE("every configuration that is shipped loads and trains two steps with two layers", "[unit]") {
  const SmallData data;
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(QUELL_SOURCE) + "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    INFO(entry.path().filename().string());
    ++count;
    Run run(data.load(entry.path()), {});
    for (const int64_t step : {0, 1}) {
      const StepResult result = train_step(run, step, nullptr);
      CHECK_FALSE(result.bad.item<bool>());
      CHECK(result.totals.objective() < std::log(1024) + 3);
    }
    CHECK(run.optimizer.updates() == 2);
  }
  CHECK(count >= 21);
}

TEST_CASE("two layers of ViT-22B at a sixteenth of its width train for twenty steps", "[unit]") {
  const SmallData data;
  Run run(data.load(std::string(QUELL_SOURCE) + "/configs/vit_22b.yaml"), {});
  const double first = train_step(run, 0, nullptr).totals.objective();
  double last = first;
  for (int64_t step = 1; step < 20; ++step) last = train_step(run, step, nullptr).totals.objective();
  CHECK(run.optimizer.updates() == 20);
  CHECK(last < first);
}

}  // namespace quell
