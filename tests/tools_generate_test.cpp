// Text from a run's folder.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "tools/generate.h"
#include "train/session.h"
#include "train_support.h"

namespace quell {
namespace {

std::string generated(const GenerateOptions& options) {
  std::string text;
  generate(options, [&](const std::string& piece) { text += piece; });
  return text;
}

}  // namespace

TEST_CASE("a run's folder speaks, the same for one seed, otherwise for another", "[unit]") {
  const testing::TinyText text;
  RunConfig config = testing::tiny_config(text);
  config.threads = 1;
  const std::string folder = text.folder() / "run";
  REQUIRE(run_training(config, {.folder = folder, .quiet = true}) == 0);

  GenerateOptions options{.run = folder, .prompt = "line 4", .sample = {.tokens = 40, .seed = 1}};
  const std::string first = generated(options);
  CHECK(first.substr(0, 6) == "line 4");
  CHECK(first.size() == 46);
  CHECK(generated(options) == first);
  options.sample.seed = 2;
  CHECK(generated(options) != first);

  options.sample.temperature = 0;
  const std::string greedy = generated(options);
  options.sample = {.tokens = 40, .top_k = 1, .seed = 9};
  CHECK(generated(options) == greedy);
  options.sample = {.tokens = 40, .top_p = 1e-9, .seed = 9};
  CHECK(generated(options) == greedy);
}

TEST_CASE("what is missing from a run's folder is named", "[unit]") {
  const testing::TemporaryFolder folder;
  CHECK_THROWS_WITH(generated({.run = folder / "none"}), Catch::EndsWith("none: no such folder; give the folder of a run, like runs/text_small"));
  CHECK_THROWS_WITH(generated({.run = folder.path()}), Catch::Contains("/config.yaml: not there"));
}

TEST_CASE("a prompt with a character that the model has never seen is an error with its place", "[unit]") {
  const testing::TinyText text;
  RunConfig config = testing::tiny_config(text);
  config.threads = 1;
  config.steps = 1;
  const std::string folder = text.folder() / "run";
  REQUIRE(run_training(config, {.folder = folder, .quiet = true}) == 0);
  CHECK_THROWS_AS(generated({.run = folder, .prompt = "line \xC3\xA9"}), DataError);
}

}  // namespace quell
