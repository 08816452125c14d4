// What loading makes of a text that is right, in which order rules and checks run, and that no text breaks it.
#include <catch2/catch.hpp>

#include "config/print.h"
#include "config_example.h"

namespace quell {
namespace {

using example::complaint;
using example::loaded;

// Defaults that are not empty, and a rule that tells whether it ran.
struct Filled {
  Optional<int64_t> batches = 40;
  std::vector<std::string> freeze{"a", "b"};
  std::map<std::string, example::Norm> norms{{"first", {}}};
  int64_t width = 8;
};
bool any_rule_ran = false;
template <class V>
void describe(V& v, Filled& c) {
  v.field("batches", c.batches, help("").absent("all").at_least(1));
  v.field("freeze", c.freeze, help(""));
  v.field("norms", c.norms, help(""));
  v.field("width", c.width, help("").at_least(1));
  v.derive([] { any_rule_ran = true; });
}
Filled filled(const std::string& text, const std::vector<config::Override>& overrides = {}) {
  any_rule_ran = false;
  return config::load<Filled>(config::Source::from_text(text, "filled.yaml", overrides));
}

TEST_CASE("an absent word takes away a default that is there", "[unit]") {
  CHECK(filled("width: 1").batches == 40);
  CHECK(!filled("batches: all").batches);
}

TEST_CASE("a list and named sections that are written replace the default ones", "[unit]") {
  CHECK(filled("freeze: []").freeze.empty());
  CHECK(filled("norms: {}").norms.empty());
  CHECK(filled("norms: {second: {}}").norms.count("first") == 0);
  const std::string printed = config::print(filled("{freeze: [], norms: {}, batches: all}"));
  CHECK(config::print(filled(printed)) == printed);
}

TEST_CASE("the path of an override leaves the rest of a default list or of default sections", "[unit]") {
  CHECK(filled("width: 1", {{"freeze.1=c", true}}).freeze == std::vector<std::string>{"a", "c"});
  const Filled one = filled("width: 1", {{"norms.second.eps=1", true}});
  CHECK(one.norms.size() == 2);
  CHECK(filled("width: 1", {{"norms.first.eps=1", true}}).norms.at("first").eps == 1);
}

TEST_CASE("a rule runs only where every field above it could be read", "[unit]") {
  filled("width: 1");
  CHECK(any_rule_ran);
  CHECK_THROWS_AS(filled("width: 0"), UsageError);
  CHECK(!any_rule_ran);
}

TEST_CASE("what is not written has its default", "[unit]") {
  const example::Run run = loaded("name: x");
  CHECK(run.name == "x");
  CHECK(!run.steps);
  CHECK(run.wait == 90);
  CHECK(run.optimizer == example::Optimizer{});
  CHECK(std::holds_alternative<example::Tokens>(run.data));
}

TEST_CASE("a section with nothing under it means defaults", "[unit]") {
  const example::Run run = loaded("name: x\noptimizer:\nmodel: ~\ndata:\nnorms:\nevaluate: null\n");
  CHECK(run.optimizer == example::Optimizer{});
  CHECK(run.model.head_width == 32);
}

TEST_CASE("every type of field is read", "[unit]") {
  const example::Run run = loaded(R"(
name: 007 is a name
from: "none"
steps: 1_000
tokens: 1.5M
time: 23h45m
wait: 1d
threads: auto
model: {width: 1.28e2, norm: {kind: layernorm, eps: 1_0e-7, bias: true}, preset: rmsnorm}
data: {kind: images, size: 32}
norms: {first: {eps: 1}, second_2: {}}
evaluate:
  sets:
    - {name: a, data: b}
    - name: 'it''s'
optimizer: {betas: [.5, 0], freeze: [blocks.0, "*.bias"], milestones: [1k, 2G], flags: [true, false]}
)");
  CHECK(run.name == "007 is a name");
  CHECK(run.from == "none");
  CHECK(run.steps == 1000);
  CHECK(run.tokens == 1500000);
  CHECK(run.time == 85500.0);
  CHECK(run.wait == 86400);
  CHECK(!run.threads);
  CHECK(run.model == example::Model{128, 4, 4, 32, {ExampleKind::layernorm, 1e-6, true}, ExampleKind::rmsnorm});
  CHECK(std::get<example::Images>(run.data) == example::Images{"data/images", 64, 32});
  CHECK(run.norms.size() == 2);
  CHECK(run.norms.at("first").eps == 1.0);
  CHECK(run.evaluate.sets == std::vector<example::Set>{{"a", "b"}, {"it's", ""}});
  CHECK(run.optimizer.betas == std::array{0.5, 0.0});
  CHECK(run.optimizer.freeze == std::vector<std::string>{"blocks.0", "*.bias"});
  CHECK(run.optimizer.milestones == std::vector<int64_t>{1000, 2000000000});
  CHECK(run.optimizer.flags == std::vector<bool>{true, false});
}

TEST_CASE("a byte order mark, CRLF, comments, a leading --- and a final ... are accepted", "[unit]") {
  const example::Run run =
      loaded("\xEF\xBB\xBF# a comment\r\n---\r\nname: x  # another\r\nmodel:\r\n  width: 64\r\n...\r\n");
  CHECK(run.name == "x");
  CHECK(run.model.width == 64);
  CHECK(complaint("\xEF\xBB\xBF"
                  "steps: x")
            .starts_with("run.yaml:1:8: "));
  CHECK(complaint("name: x\r\nsteps: x\r\n").find("    2 | steps: x\n") != std::string::npos);
}

TEST_CASE("block and quoted texts may hold what plain ones may not", "[unit]") {
  CHECK(loaded("name: |\n  a: b\n  - c\n").name == "a: b\n- c\n");
  CHECK(loaded("name: \"a\n  b\\n\\u00e9\"").name == "a b\n\xC3\xA9");
}

TEST_CASE("a derived default follows from the fields above it, and what is written wins", "[unit]") {
  CHECK(loaded("model: {width: 64, heads: 2}").model.head_width == 32);
  CHECK(loaded("model: {head_width: 7, width: 64}").model.head_width == 7);
}

TEST_CASE("new entries of a NamedMap start as its fallback", "[unit]") {
  const example::Run run =
      loaded("model: {width: 64, heads: 2, norm: {eps: 1e-5}}\nvariants: {a: {heads: 4}, b: {norm: {kind: none}}}");
  CHECK(run.variants.at("a").width == 64);
  CHECK(run.variants.at("a").head_width == 16);
  CHECK(run.variants.at("b").norm == example::Norm{ExampleKind::none, 1e-5, false});
}

TEST_CASE("a check runs only where its struct could be read, so one misspelling is one mistake", "[unit]") {
  CHECK(complaint("model: {width: 770, heads: 12}").find("does not divide") != std::string::npos);
  CHECK(complaint("model: {width: 770, heads: 12, layers: x}").find("does not divide") == std::string::npos);
  CHECK(complaint("model: {width: 770, heds: 11}").find("does not divide") == std::string::npos);
  CHECK(complaint("model: {width: 770, heads: 12}\noptimizer: {lr: x}").find("does not divide") != std::string::npos);
  CHECK(complaint("model: {width: 770, heads: 12, norm: {eps: x}}").find("does not divide") == std::string::npos);
}

TEST_CASE("checks of inner and outer structs are reported together, in order of place", "[unit]") {
  const std::string message = complaint("model: {heads: 12, norm: {bias: true}}");
  const size_t outer = message.find("model.heads: 12 does not divide");
  const size_t inner = message.find("model.norm.bias: only layernorm");
  REQUIRE(outer != std::string::npos);
  REQUIRE(inner != std::string::npos);
  CHECK(outer < inner);
}

TEST_CASE("the caller's own check sees the whole struct and is skipped where it could not be read", "[unit]") {
  const auto message_of = [](const std::string& text) -> std::string {
    try {
      config::load<example::Run>(config::Source::from_text(text, "run.yaml"),
                                 [](Problems& problems, const example::Run& run) {
                                   if (run.model.width > 100) problems.add("model.width", "too wide", "at most 100");
                                   problems.add("", "nothing is right");
                                 });
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message_of("name: x\nmodel: {width: 128}\n") ==
        "run.yaml: nothing is right\n"
        "run.yaml:2:16: model.width: too wide\n"
        "    2 | model: {width: 128}\n"
        "      |                ^^^\n"
        "  at most 100");
  CHECK(message_of("name: x\nmodle: {width: 128}\n").find("too wide") == std::string::npos);
}

std::string mutated(std::string text, uint64_t& state) {
  const auto draw = [&state](size_t below) {  // splitmix64
    uint64_t z = state += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return static_cast<size_t>((z ^ (z >> 31)) % below);
  };
  const std::string special("\"'[]{}:,#&*!|>%@`?-~\\\n\t \0\x80\xFF\xC3.0_e", 33);
  const size_t edits = 1 + draw(2);
  for (size_t i = 0; i < edits && !text.empty(); ++i) {
    const size_t at = draw(text.size());
    switch (draw(5)) {
      case 0:
        text[at] = special[draw(special.size())];
        break;
      case 1:
        text.insert(at, 1, special[draw(special.size())]);
        break;
      case 2:
        text.erase(at, 1 + draw(8));
        break;
      case 3:
        text.insert(at, text.substr(draw(text.size()), 1 + draw(20)));
        break;
      default:
        text[at] = static_cast<char>(draw(256));
    }
  }
  return text;
}

TEST_CASE("a mutated file either loads or is a usage error, and what loads prints and loads again", "[unit]") {
  const std::string good = R"(# a run
name: "a b"
steps: 1e3
tokens: 10G
time: 23h45m
threads: auto
model:
  width: 128
  norm: {kind: layernorm, eps: 1e-6, bias: true}
data: {kind: tokens, train: 'x', batch: 8}
variants:
  local: {layers: 3}
evaluate:
  sets:
    - {name: a, data: b}
    - name: c
optimizer: {betas: [0.9, 0.95], freeze: [a.*, "b"], flags: [true]}
)";
  uint64_t state = 1;
  int succeeded = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = mutated(good, state);
    INFO(text);
    std::string printed;
    try {
      printed = config::print(loaded(text, {{"optimizer.betas.1=0.5", true}}));
    } catch (const UsageError&) {
      continue;
    }
    ++succeeded;
    CHECK(config::print(loaded(printed)) == printed);
  }
  CHECK(succeeded > 20);  // so that both ways are taken
}

}  // namespace
}  // namespace quell
