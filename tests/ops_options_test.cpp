// What options refuse on their own, with reason and fix, and the first factor of the attention logits.
#include <catch2/catch.hpp>
#include <cmath>

#include "ops/options.h"

using namespace quell;

namespace {

template <class Options>
std::string problems_of(const Options& options) {
  Problems problems;
  check(problems, options);
  std::string text;
  for (const auto& problem : problems.all()) text += problem.key + ": " + problem.message + "; " + problem.fix + "\n";
  return text;
}

// Several changes to a struct's defaults.
template <class Options, class Change>
std::string problems_with(Change&& change) {
  Options options;
  change(options);
  return problems_of(options);
}

}  // namespace

TEST_CASE("the default qk_norm and scale are allowed, and kind none refuses nothing", "[unit]") {
  CHECK(problems_of(QkNormOptions{}) == "");
  CHECK(problems_of(ScaleOptions{}) == "");
  CHECK(problems_of(RopeScaling{}) == "");
  CHECK(problems_with<QkNormOptions>([](auto& o) { o.kind = NormKind::none, o.axis = NormAxis::projection; }) == "");
}

TEST_CASE("qk_norm refuses what has no meaning, with the reason", "[unit]") {
  using Change = std::function<void(QkNormOptions&)>;
  const std::vector<std::pair<Change, std::string>> refused{
      {[](auto& o) { o.weight = NormWeight::projection; },
       "weight: projection does not fit axis head: statistics of one head, but a weight over all of them; use weight: shared or "
       "per_head, or axis: projection\n"},
      {[](auto& o) { o.axis = NormAxis::projection, o.weight = NormWeight::per_head; },
       "weight: per_head does not fit axis projection, which knows no heads; use weight: projection, or axis: head\n"},
      {[](auto& o) { o.axis = NormAxis::projection, o.weight = NormWeight::projection, o.rope = RopeOrder::after; },
       "rope: after does not fit axis projection, whose norm comes before the heads are split; use rope: before, or axis: "
       "head\n"},
      {[](auto& o) { o.weight = NormWeight::none, o.zero_centered = true; },
       "zero_centered: there is no weight to centre on zero; use zero_centered: false, or give a weight\n"},
      {[](auto& o) { o.weight = NormWeight::none, o.tie_qk = true; },
       "tie_qk: there is no weight to tie; use tie_qk: false, or give a weight\n"},
      {[](auto& o) { o.center = false; },
       "center: rmsnorm subtracts no mean, so there is nothing to switch off; leave it out, or use kind: layernorm\n"},
      {[](auto& o) { o.kind = NormKind::l2, o.bias = true; }, "bias: l2 has no bias; use bias: false, or kind: layernorm\n"},
      {[](auto& o) { o.eps = 0; },
       "eps: 0 divides by zero in a row of zeros (rmsnorm); use a positive number such as 1e-6; only kind: l2 allows 0\n"}};
  for (const auto& [change, message] : refused) CHECK(problems_with<QkNormOptions>(change) == message);
  CHECK(problems_with<QkNormOptions>([](auto& o) { o.kind = NormKind::l2, o.eps = 0; }) == "");
  CHECK(problems_with<QkNormOptions>([](auto& o) { o.kind = NormKind::layernorm, o.center = false, o.bias = true; }) == "");
}

TEST_CASE("scale refuses what would be ignored or cannot be computed", "[unit]") {
  using Change = std::function<void(ScaleOptions&)>;
  const auto learned = [](ScaleOptions& o) { o.kind = ScaleKind::learned, o.init = 10; };
  const std::vector<std::pair<Change, std::string>> refused{
      {[](auto& o) { o.kind = ScaleKind::constant; },
       "value: kind: constant needs the factor; give a number, or use kind: inv_sqrt\n"},
      {[](auto& o) { o.value = 2; }, "value: kind: inv_sqrt takes no value; leave it out, or use kind: constant\n"},
      {[&](auto& o) { learned(o), o.value = 2; }, "value: kind: learned takes no value; use init for the factor at the start\n"},
      {[](auto& o) { o.per_head = true; }, "per_head: kind: inv_sqrt learns nothing; leave it out, or use kind: learned\n"},
      {[](auto& o) { o.form = ScaleForm::exp; }, "form: kind: inv_sqrt learns nothing; leave it out, or use kind: learned\n"},
      {[](auto& o) { o.kind = ScaleKind::constant, o.value = 1, o.init = 1; },
       "init: kind: constant learns nothing; leave it out, or use kind: learned\n"},
      {[](auto& o) { o.length = 9; }, "length: kind: inv_sqrt learns nothing; leave it out, or use kind: learned\n"},
      {[](auto& o) { o.max = 9; }, "max: kind: inv_sqrt learns nothing; leave it out, or use kind: learned\n"},
      {[](auto& o) { o.kind = ScaleKind::learned; },
       "length: init: henry is log2(L^2 - L) and needs the length L; give length, or init as a number\n"},
      {[&](auto& o) { learned(o), o.length = 72; },
       "length: only init: henry has a length; leave out length, or use init: henry\n"},
      {[&](auto& o) { learned(o), o.max = 100; }, "max: only form: exp has a largest factor; leave it out, or use form: exp\n"},
      {[&](auto& o) { learned(o), o.form = ScaleForm::exp, o.init = 0; },
       "init: 0 has no logarithm, which form: exp stores; use a positive number, or form: linear\n"},
      {[&](auto& o) { learned(o), o.form = ScaleForm::exp, o.max = 5; },
       "max: 5 is below the factor at the start, 10; raise max or lower init\n"}};
  for (const auto& [change, message] : refused) CHECK(problems_with<ScaleOptions>(change) == message);
  CHECK(problems_with<ScaleOptions>([&](auto& o) { learned(o), o.form = ScaleForm::exp, o.max = 100; }) == "");
  CHECK(problems_with<ScaleOptions>([](auto& o) { o.kind = ScaleKind::learned, o.length = 72; }) == "");
}

TEST_CASE("llama3's two bounds are in order", "[unit]") {
  CHECK(problems_with<RopeScaling>([](auto& o) { o.kind = RopeScalingKind::llama3, o.low = 4; }) ==
        "low: 4 is not below high 4; llama3 needs low < high, for example 1 and 4\n");
}

TEST_CASE("the first factor is 1 / sqrt(D), the constant, the number given, or Henry's", "[unit]") {
  ScaleOptions o;
  CHECK(initial_factor(o, 64) == 0.125);
  o.kind = ScaleKind::constant;
  o.value = 1.44;
  CHECK(initial_factor(o, 64) == 1.44);
  o = {};
  o.kind = ScaleKind::learned;
  o.init = 10;
  CHECK(initial_factor(o, 64) == 10);
  o.init.reset();
  o.length = 72;
  CHECK(initial_factor(o, 64) == Approx(12.3196).epsilon(1e-5));  // the paper's example for L = 72
}
