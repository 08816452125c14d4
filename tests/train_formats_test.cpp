// Checkpoints of every format that was ever released are read, and gone on from, for ever: tests/golden/checkpoint_format_<n>, made by
// `quell train tests/golden/checkpoint_format_<n>.yaml` of the version that wrote the format first.
#include <catch2/catch.hpp>

#include "base/text.h"
#include "cases.h"
#include "checkpoint/checkpoint.h"
#include "config/load.h"
#include "train/resume.h"
#include "train/step.h"

namespace quell {

using testing::Cases;

TEST_CASE("a checkpoint of each format is whole, fits a run of its configuration, and the next step can be made", "[unit][R9]") {
  Cases cases("R9");
  const std::vector<std::string> contents{"f376290d6645402c8b38db818dec2b12"};  // of format 1
  REQUIRE(contents.size() == static_cast<size_t>(checkpoint_format));
  for (int64_t format = 1; format <= checkpoint_format; ++format, cases.add()) {
    CAPTURE(format);
    const Checkpoint checkpoint = open_checkpoint(cat(QUELL_GOLDEN, "/checkpoint_format_", format), Verify::full);
    CHECK(checkpoint.manifest.content_digest() == contents[static_cast<size_t>(format) - 1]);
    RunConfig config = config::load<RunConfig>(config::Source::from_text(checkpoint.manifest.config, "the checkpoint's run file"));
    config.steps = 3;
    Run run(config, {.overfit = 0, .resumes = true, .progress = {}});
    restore(run, checkpoint);
    CHECK(run.step == 2);
    CHECK(run.optimizer.updates() == 2);
    CHECK_FALSE(train_step(run, run.step, nullptr).bad.item<bool>());
  }
}

}  // namespace quell
