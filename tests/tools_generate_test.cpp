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
  CHECK_THROWS_MATCHES(generated({.run = folder, .prompt = "line \xC3\xA9"}), UsageError,
                       Catch::Predicate<UsageError>([](const UsageError& problem) {
                         return std::string(problem.what()).starts_with("--prompt: byte 5: the character \"\xC3\xA9\" (U+00E9) is not among");
                       }));
}

TEST_CASE("where the vocabulary has no new line, the message says that this is the default prompt", "[unit]") {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "text.txt") << [] {
    std::string text;
    for (int i = 0; i < 1000; ++i) text += "ACGT"[i * i % 7 % 4];
    return text;
  }();
  prepare_tokens({.files = {folder / "text.txt"}, .out = folder / "text", .tokenizer = "char", .valid = 0}, {});
  RunConfig config;
  config.name = "letters";
  config.steps = 1;
  config.threads = 1;
  DecoderConfig model;
  model.context = 8;
  model.width = 16;
  model.layers = 1;
  model.heads = 2;
  config.model = model;
  config.data = TokenData{.train = folder / "text/train", .batch = 2};
  REQUIRE(run_training(config, {.folder = folder / "run", .quiet = true}) == 0);
  CHECK_THROWS_WITH(generated({.run = folder / "run"}),
                    Catch::StartsWith("--prompt: byte 0: the character U+000A") && Catch::Contains("the new line that is the default"));
  CHECK(generated({.run = folder / "run", .prompt = "A", .sample = {.tokens = 3}}).size() == 4);
}

}  // namespace quell
