// Refusals that the option structs alone decide, and the first value of a learned scale. Those that need the heads are nn's.
#include "ops/options.h"

#include <cmath>

#include "base/text.h"

namespace quell {

void check(Problems& problems, const QkNormOptions& o) {
  if (o.kind == NormKind::none) return;
  if (o.axis == NormAxis::head && o.weight == NormWeight::projection) {
    problems.add("weight", "projection does not fit axis head: statistics of one head, but a weight over all of them",
                 "use weight: shared or per_head, or axis: projection");
  }
  if (o.axis == NormAxis::projection && o.weight == NormWeight::per_head) {
    problems.add("weight", "per_head does not fit axis projection, which knows no heads",
                 "use weight: projection, or axis: head");
  }
  if (o.axis == NormAxis::projection && o.rope == RopeOrder::after) {
    problems.add("rope", "after does not fit axis projection, whose norm comes before the heads are split",
                 "use rope: before, or axis: head");
  }
  if (o.weight == NormWeight::none && o.zero_centered) {
    problems.add("zero_centered", "there is no weight to centre on zero", "use zero_centered: false, or give a weight");
  }
  if (o.weight == NormWeight::none && o.tie_qk) {
    problems.add("tie_qk", "there is no weight to tie", "use tie_qk: false, or give a weight");
  }
  if (o.kind != NormKind::layernorm && !o.center) {
    problems.add("center", cat(name_of(o.kind), " subtracts no mean, so there is nothing to switch off"),
                 "leave it out, or use kind: layernorm");
  }
  if (o.kind != NormKind::layernorm && o.bias) {
    problems.add("bias", cat(name_of(o.kind), " has no bias"), "use bias: false, or kind: layernorm");
  }
  if (o.kind != NormKind::l2 && o.eps == 0) {
    problems.add("eps", cat("0 divides by zero in a row of zeros (", name_of(o.kind), ")"),
                 "use a positive number such as 1e-6; only kind: l2 allows 0");
  }
}

void check(Problems& problems, const ScaleOptions& o) {
  if (o.kind == ScaleKind::constant && !o.value) {
    problems.add("value", "kind: constant needs the factor", "give a number, or use kind: inv_sqrt");
  }
  if (o.kind != ScaleKind::constant && o.value) {
    problems.add("value", cat("kind: ", name_of(o.kind), " takes no value"),
                 o.kind == ScaleKind::learned ? "use init for the factor at the start" : "leave it out, or use kind: constant");
  }
  if (o.kind != ScaleKind::learned) {
    const auto refuse = [&](bool given, const char* key) {
      if (given) problems.add(key, cat("kind: ", name_of(o.kind), " learns nothing"), "leave it out, or use kind: learned");
    };
    refuse(o.per_head, "per_head");
    refuse(o.form == ScaleForm::exp, "form");
    refuse(o.init.has_value(), "init");
    refuse(o.length.has_value(), "length");
    refuse(o.max.has_value(), "max");
    return;
  }
  if (!o.init && !o.length) {
    problems.add("length", "init: henry is log2(L^2 - L) and needs the length L", "give length, or init as a number");
  }
  if (o.init && o.length) {
    problems.add("length", "only init: henry has a length", "leave out length, or use init: henry");
  }
  if (o.form == ScaleForm::linear && o.max) {
    problems.add("max", "only form: exp has a largest factor", "leave it out, or use form: exp");
  }
  if (o.form != ScaleForm::exp) return;
  if (o.init && *o.init <= 0) {
    problems.add("init", cat(*o.init, " has no logarithm, which form: exp stores"), "use a positive number, or form: linear");
  } else if (o.max && (o.init || o.length) && initial_factor(o, 1) > *o.max) {
    problems.add("max", cat(*o.max, " is below the factor at the start, ", initial_factor(o, 1)), "raise max or lower init");
  }
}

void check(Problems& problems, const RopeScaling& o) {
  if (o.kind == RopeScalingKind::llama3 && o.low >= o.high) {
    problems.add("low", cat(o.low, " is not below high ", o.high), "llama3 needs low < high, for example 1 and 4");
  }
}

double initial_factor(const ScaleOptions& o, int64_t head_width) {
  switch (o.kind) {
    case ScaleKind::inv_sqrt: return 1 / std::sqrt(static_cast<double>(head_width));
    case ScaleKind::constant: return o.value.value();
    case ScaleKind::learned: break;
  }
  if (o.init) return *o.init;
  const double length = static_cast<double>(o.length.value());
  return std::log2(length * length - length);
}

}  // namespace quell
