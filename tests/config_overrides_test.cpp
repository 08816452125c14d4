// How overrides change what a file says. Their error texts are in tests/golden/config_errors.txt.
#include <catch2/catch.hpp>

#include "config_example.h"

namespace quell {
namespace {

using example::complaint;
using example::loaded;

TEST_CASE("an override sets a value that the file does not mention", "[unit]") {
  CHECK(loaded("name: x", {{"model.norm.eps=1e-5", false}}).model.norm.eps == 1e-5);
}

TEST_CASE("an override wins over the file and a later one over an earlier one", "[unit]") {
  CHECK(loaded("model: {layers: 2}", {{"model.layers=3", true}}).model.layers == 3);
  CHECK(loaded("model: {layers: 2}", {{"model.layers=3", true}, {"model.layers=4", false}}).model.layers == 4);
}

TEST_CASE("a wrong value in the file does not matter once an override replaces it", "[unit]") {
  CHECK(loaded("model: {layers: many}", {{"model.layers=3", true}}).model.layers == 3);
}

TEST_CASE("a map is merged into its section key by key", "[unit]") {
  const example::Run run =
      loaded("model: {layers: 2, norm: {eps: 1e-5}}", {{"model={heads: 2, norm: {kind: none}}", true}});
  CHECK(run.model.layers == 2);
  CHECK(run.model.heads == 2);
  CHECK(run.model.norm == example::Norm{ExampleKind::none, 1e-5, false});
}

TEST_CASE("a list replaces the list of the file, an index changes one element", "[unit]") {
  CHECK(loaded("optimizer: {freeze: [a, b]}", {{"optimizer.freeze=[c]", true}}).optimizer.freeze ==
        std::vector<std::string>{"c"});
  CHECK(loaded("optimizer: {freeze: [a, b]}", {{"optimizer.freeze.1=c", true}}).optimizer.freeze ==
        std::vector<std::string>{"a", "c"});
  const example::Run run = loaded("evaluate: {sets: [{name: a, data: b}]}", {{"evaluate.sets.0.data=c", true}});
  CHECK(run.evaluate.sets == std::vector<example::Set>{{"a", "c"}});
}

TEST_CASE("an index changes one element of a default that the file does not mention", "[unit]") {
  CHECK(loaded("name: x", {{"optimizer.betas.1=0.5", true}}).optimizer.betas == std::array{0.9, 0.5});
  CHECK(loaded("name: x", {{"optimizer.betas.1=0.5", true}, {"optimizer.betas.0=0.25", true}}).optimizer.betas ==
        std::array{0.25, 0.5});
  CHECK(loaded("name: x", {{"optimizer.betas.1=0.5", true}, {"optimizer.betas=[0, 0]", true}}).optimizer.betas ==
        std::array{0.0, 0.0});
}

TEST_CASE("a path adds a named section and changes one that is there", "[unit]") {
  const example::Run run = loaded("norms: {a: {eps: 1}}", {{"norms.b.eps=2", true}, {"norms.a.bias=false", true}});
  CHECK(run.norms.at("a").eps == 1);
  CHECK(run.norms.at("b").eps == 2);
}

TEST_CASE("switching the kind of a variant leaves out the file's keys of the other kind only", "[unit]") {
  const std::string text = "data: {kind: tokens, train: x, batch: 3}";
  const example::Run run = loaded(text, {{"data.kind=images", true}, {"data.size=32", true}});
  CHECK(std::get<example::Images>(run.data) == example::Images{"data/images", 3, 32});
  CHECK(complaint(text, {{"data.kind=images", true}, {"data.train=y", true}}).find("data.train: unknown key") !=
        std::string::npos);
  CHECK(complaint("data: {kind: tokens, trian: x}", {{"data.kind=images", true}}).find("data.trian: unknown key") !=
        std::string::npos);
  CHECK(complaint("data: {kind: images, train: x}").find("data.train: unknown key") != std::string::npos);
}

TEST_CASE("an override below an empty section of the file is as if the section were not there", "[unit]") {
  CHECK(loaded("optimizer:\n", {{"optimizer.lr=3", true}}).optimizer.lr == 3);
}

TEST_CASE("a value may hold =, spaces and quotes", "[unit]") {
  CHECK(loaded("name: x", {{"name=a=b", false}}).name == "a=b");
  CHECK(loaded("name: x", {{"name= a b ", false}}).name == "a b");
  CHECK(loaded("name: x", {{"name=\"a #b\"", false}}).name == "a #b");
  CHECK(loaded("name: x", {{"name=\"\"", false}}).name.empty());
  CHECK(loaded("name: x", {{"name=a#b", false}}).name == "a#b");
}

TEST_CASE("mistakes of the file and of all overrides are reported together", "[unit]") {
  const std::string message = complaint("steps: x", {{"model.layers=y", false}, {"=", true}, {"threads=z", true}});
  const std::vector<size_t> at{message.find("run.yaml:1:8: steps"), message.find("model.layers=y: model.layers"),
                               message.find("--set =: "), message.find("--set threads=z: threads")};
  CHECK(std::is_sorted(at.begin(), at.end()));
  CHECK(at.back() != std::string::npos);
}

TEST_CASE("where the file is no YAML, the overrides' own mistakes are still shown and nothing else is", "[unit]") {
  const std::string message = complaint("steps: [", {{"model.layers=y", false}, {"=3", true}});
  CHECK(message.find("this [ is never closed") != std::string::npos);
  CHECK(message.find("--set =3: ") != std::string::npos);
  CHECK(message.find("model.layers") == std::string::npos);
}

}  // namespace
}  // namespace quell
