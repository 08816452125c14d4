// What explain and the reference page say.
#include <catch2/catch.hpp>

#include "config/reference.h"
#include "config_example.h"

namespace quell {
namespace {

std::string explained(const std::string& path) { return config::explain<example::Run>(path); }

TEST_CASE("a key is explained by type, range, unit, default and where it stands", "[unit]") {
  CHECK(explained("evaluate.every") == R"(evaluate.every
  Steps between evaluations.

  type      an integer
  range     at least 0
  unit      steps
  default   300
  in a run file
    evaluate:
      every: 300
  on the command line
    evaluate.every=300
)");
}

TEST_CASE("choices are explained with their help, and a command line is quoted for the shell", "[unit]") {
  CHECK(
      explained("model.norm.kind").find("  choices\n    none\n    layernorm  with a mean\n    rmsnorm    without\n") !=
      std::string::npos);
  CHECK(explained("optimizer.betas").find("\n    'optimizer.betas=[0.9, 0.95]'\n") != std::string::npos);
}

TEST_CASE("a key of a list's element, of a named section and of each alternative is found", "[unit]") {
  CHECK(explained("evaluate.sets.0.name").find("    evaluate:\n      sets:\n        - name: \"\"\n") !=
        std::string::npos);
  CHECK(explained("variants.local.layers").find("\n  default   4\n") != std::string::npos);
  const std::string batch = explained("data.batch");
  CHECK(batch.find("only with data.kind: tokens") != std::string::npos);
  CHECK(batch.find("only with data.kind: images") != std::string::npos);
}

TEST_CASE("a section is explained by its keys", "[unit]") {
  CHECK(explained("data") == R"(data
  What is trained on.

  type      a section whose keys follow from its kind
  keys
    kind    Which alternative; the other keys follow from it.
    train   A folder. (data.kind: tokens)
    batch   Samples of a step. (data.kind: tokens)
    folder  A folder of images. (data.kind: images)
    batch   Samples of a step. (data.kind: images)
    size    Side of a square. (data.kind: images)
)");
}

TEST_CASE("explaining an unknown key is a usage error with a hint", "[unit]") {
  CHECK_THROWS_WITH(explained("optimizer.lrr"), "optimizer.lrr: unknown key\n  did you mean \"optimizer.lr\"?");
  CHECK_THROWS_AS(explained("optimizer.lrr"), UsageError);
}

TEST_CASE("the keys are listed once each, sections before what is in them", "[unit]") {
  std::vector<std::string> names;
  for (const config::Key& key : config::keys_of<example::Run>()) names.push_back(key.path + key.condition);
  const auto at = [&](const std::string& name) { return std::find(names.begin(), names.end(), name) - names.begin(); };
  CHECK(at("model") < at("model.norm"));
  CHECK(at("model.norm") < at("model.norm.eps"));
  CHECK(at("evaluate.sets.N.name") < static_cast<std::ptrdiff_t>(names.size()));
  CHECK(at("norms.NAME.eps") < static_cast<std::ptrdiff_t>(names.size()));
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("the reference page has a table for each section and a row for each key", "[unit]") {
  const std::string page = config::reference<example::Run>();
  const std::vector<config::Key>& keys = config::keys_of<example::Run>();
  size_t rows = 0;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) rows += line.starts_with("| `");
  CHECK(rows == keys.size());
  CHECK(page.find("\n## data (data.kind: images)\n") != std::string::npos);
  CHECK(page.find("\n## evaluate.sets.N\n") != std::string::npos);
  CHECK(page.find("| `kind` | one of the choices | `rmsnorm` | The norm.<br>`none`<br>`layernorm`: with a "
                  "mean<br>`rmsnorm`: without |") != std::string::npos);
  CHECK(page.find("| `batch` | an integer, at least 1 (samples) | `8` | Samples of a step. |") != std::string::npos);
}

}  // namespace
}  // namespace quell
