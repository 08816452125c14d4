// The layout of a printed run, its origins, and that printing and loading are inverse for every value that loading can
// give.
#include <catch2/catch.hpp>

#include <cmath>

#include "config/print.h"
#include "config_example.h"

namespace quell {
namespace {

using example::loaded;

// One of each kind of value, for the round trip.
struct Values {
  bool flag = false;
  int64_t integer = 0, count = 0, wait = 0;
  double number = 0, amount = 0, time = 0;
  std::string text;
  Optional<std::string> word;
  Optional<double> maybe;
  std::vector<std::string> texts;
};
template <class V>
void describe(V& v, Values& c) {
  v.field("flag", c.flag, help(""));
  v.field("integer", c.integer, help(""));
  v.field("count", c.count, help("").suffixes());
  v.field("wait", c.wait, help("").duration());
  v.field("number", c.number, help(""));
  v.field("amount", c.amount, help("").suffixes());
  v.field("time", c.time, help("").duration());
  v.field("text", c.text, help(""));
  v.field("word", c.word, help("").absent("auto"));
  v.field("maybe", c.maybe, help(""));
  v.field("texts", c.texts, help(""));
}

Values reloaded(const Values& values) {
  return config::load<Values>(config::Source::from_text(config::print(values), "printed.yaml"));
}

TEST_CASE("a run is printed with every key, small sections on one line", "[unit]") {
  const std::string printed = config::print(loaded(R"(
name: x
tokens: 10_000_000_000
time: 23h45m
data: {kind: images}
norms: {a: {eps: 1e-5}}
variants: {local: {heads: 2}}
evaluate: {sets: [{name: a, data: data/kjv/valid}, {name: "b c", data: "it's"}]}
optimizer: {freeze: ["*.bias", blocks.0.*]}
)"));
  CHECK(printed == R"(name: x
from: none
steps: none
tokens: 10G
time: 23h45m
wait: 1m30s
threads: auto
model:
  width: 128
  layers: 4
  heads: 4
  head_width: 32
  norm: {kind: rmsnorm, eps: 1e-06, bias: false}
  preset: none
data: {kind: images, folder: data/images, batch: 64, size: 224}
norms:
  a: {kind: rmsnorm, eps: 1e-05, bias: false}
variants:
  local:
    width: 128
    layers: 4
    heads: 2
    head_width: 64
    norm: {kind: rmsnorm, eps: 1e-06, bias: false}
    preset: none
evaluate:
  sets:
    - {name: a, data: data/kjv/valid}
    - {name: b c, data: "it's"}
  every: 300
optimizer:
  lr: 0.001
  betas: [0.9, 0.95]
  weight_decay: 0.1
  freeze: ["*.bias", blocks.0.*]
  milestones: []
  flags: []
)");
  CHECK(config::print(loaded(printed)) == printed);
}

TEST_CASE("a section that does not fit on a line of 110 columns is printed as a block", "[unit]") {
  const auto printed = [](size_t length) {
    return config::print(loaded("evaluate: {sets: [{name: " + std::string(length, 'n') + ", data: d}]}"));
  };
  CHECK(printed(87).find("    - {name: n") != std::string::npos);
  CHECK(printed(88).find("    - name: " + std::string(88, 'n') + "\n      data: d\n") != std::string::npos);
}

TEST_CASE("each value is followed by where it came from", "[unit]") {
  const auto source = config::Source::from_text(
      "name: x\nmodel:\n  layers: 3\nevaluate: {sets: [{name: a}]}\nvariants: {b: {heads: 2}}\n", "run.yaml",
      {{"optimizer.lr=3e-4", true}, {"data={kind: images, size: 3}", false}, {"optimizer.betas.1=0.99", true}});
  CHECK(config::print_with_origins(config::load<example::Run>(source), source) ==
        R"(name: x                                     # run.yaml:1:7
from: none                                  # default
steps: none                                 # default
tokens: none                                # default
time: none                                  # default
wait: 1m30s                                 # default
threads: auto                               # default
model:
  width: 128                                # default
  layers: 3                                 # run.yaml:3:11
  heads: 4                                  # default
  head_width: 32                            # derived
  norm:
    kind: rmsnorm                           # default
    eps: 1e-06                              # default
    bias: false                             # default
  preset: none                              # default
data:
  kind: images                              # data={kind: images, size: 3}
  folder: data/images                       # default
  batch: 64                                 # default
  size: 3                                   # data={kind: images, size: 3}
norms: {}                                   # default
variants:
  b:
    width: 128                              # default
    layers: 3                               # derived
    heads: 2                                # run.yaml:5:23
    head_width: 64                          # derived
    norm:
      kind: rmsnorm                         # default
      eps: 1e-06                            # default
      bias: false                           # default
    preset: none                            # default
evaluate:
  sets:
    - name: a                               # run.yaml:4:26
      data: ""                              # default
  every: 300                                # default
optimizer:
  lr: 3e-04                                 # --set optimizer.lr=3e-4
  betas: [0.9, 0.99]                        # --set optimizer.betas.1=0.99
  weight_decay: 0.1                         # default
  freeze: []                                # default
  milestones: []                            # default
  flags: []                                 # default
)");
}

TEST_CASE("what is printed with origins is a run file of the same values", "[unit]") {
  const auto source =
      config::Source::from_text("evaluate: {sets: [{name: a}, {}]}\n", "run.yaml", {{"name=a: b", true}});
  const auto right =
      config::Source::from_text("evaluate: {sets: [{name: a}, {}]}\n", "run.yaml", {{"name=\"a: b\"", true}});
  CHECK_THROWS_AS(config::load<example::Run>(source), UsageError);
  const example::Run run = config::load<example::Run>(right);
  CHECK(config::print(loaded(config::print_with_origins(run, right))) == config::print(run));
}

TEST_CASE("numbers print and load as the same bits", "[unit]") {
  Values values;
  for (const double number : {0.0,
                              -0.0,
                              1e-6,
                              0.1,
                              1.0 / 3,
                              5e-324,
                              2.2250738585072014e-308,
                              1.7976931348623157e308,
                              1e22,
                              123456789.0,
                              9007199254740993.0,
                              -2.5,
                              60.0,
                              3600.0,
                              90061.0,
                              1e15,
                              1e13,
                              0.5,
                              1e4,
                              1.5e6}) {
    values.number = values.amount = values.time = number;
    values.maybe = number;
    INFO(config::print(values));
    const Values same = reloaded(values);
    for (const double back : {same.number, same.amount, same.time, *same.maybe}) {
      CHECK(back == number);
      CHECK(std::signbit(back) == std::signbit(number));
    }
  }
  for (const int64_t integer :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{59}, int64_t{60}, int64_t{86400}, int64_t{1000}, int64_t{1001},
        int64_t{1500000}, int64_t{-3000}, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    values.integer = values.count = values.wait = integer;
    INFO(config::print(values));
    const Values same = reloaded(values);
    CHECK(same.integer == integer);
    CHECK(same.count == integer);
    CHECK(same.wait == integer);
  }
}

TEST_CASE("awkward texts print and load as the same bytes", "[unit]") {
  Values values;
  values.flag = true;
  std::vector<std::string> awkward{"",
                                   " ",
                                   "a b",
                                   " a",
                                   "a ",
                                   "a  b",
                                   "null",
                                   "~",
                                   "Null",
                                   "true",
                                   "no",
                                   "On",
                                   "y",
                                   "none",
                                   "auto",
                                   "1",
                                   "007",
                                   "1e3",
                                   "-",
                                   "- a",
                                   "?",
                                   "a: b",
                                   "a:",
                                   "a:b",
                                   ":a",
                                   "cuda:0",
                                   "a #b",
                                   "#a",
                                   "a#b",
                                   "{a",
                                   "[a]",
                                   "a, b",
                                   "*.bias",
                                   "blocks.0.*",
                                   "&a",
                                   "!a",
                                   "|",
                                   ">",
                                   "%a",
                                   "@a",
                                   "`a",
                                   "'",
                                   "''",
                                   "it's",
                                   "\"",
                                   "a\"b",
                                   "\\",
                                   "\\n",
                                   "a\nb",
                                   "\n",
                                   "\t",
                                   "a\tb",
                                   "\r\n",
                                   "\x01\x1b[31m\x7f",
                                   "\xC2\x85",
                                   "\xC2\x80\xC2\x9F",
                                   "\xC3\xA9",
                                   "\xE2\x80\xA8",
                                   "\xEF\xBB\xBF",
                                   "\xF0\x9F\x98\x80",
                                   ".5",
                                   "./a",
                                   "../a",
                                   "/a",
                                   "---",
                                   "...",
                                   "<<",
                                   "=",
                                   "0x10",
                                   ".nan",
                                   "2024-01-01",
                                   "12:30:45"};
  for (const std::string& text : awkward) {
    values.text = text;
    values.word = text;
    INFO(config::print(values));
    const Values same = reloaded(values);
    CHECK(same.text == text);
    CHECK(same.word == text);
  }
  values.texts = awkward;
  values.word.reset();
  const Values same = reloaded(values);
  CHECK(same.texts == awkward);
  CHECK(!same.word);
  CHECK(same.flag);
}

TEST_CASE("texts are quoted only where another reader would take them for something else", "[unit]") {
  const auto written = [](const std::string& text) { return config::write(text, help("")); };
  for (const char* plain : {"a", "data/kjv/train", "./a", "blocks.0.*", "cuda:0", "local x5", "a-b", "v1.2"})
    CHECK(written(plain) == plain);
  for (const char* quoted : {"", "1", "1e3", "yes", "true", "null", "*.bias", "a: b", "a#", "-a", "2024-01-01", " a"}) {
    CHECK(written(quoted) == cat("\"", quoted, "\""));
  }
}

}  // namespace
}  // namespace quell
