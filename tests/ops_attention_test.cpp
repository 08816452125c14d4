// Attention: the fused path against the twin, the twin against loops in float64, and laws. B batch, T position, H query
// heads, G key/value heads, D head width.
#include <catch2/catch.hpp>

#include <string>

#include "base/error.h"
#include "ops/attention.h"
#include "ops/reference.h"
#include "support.h"
#include "tensors/fill.h"

using namespace quell;
using namespace quell::ops;
using quell::testing::as_accurate_as;
using quell::testing::gradient_error;
using quell::testing::gradients;
using quell::testing::largest;
using quell::testing::random_tensor;
using quell::testing::ulp;

namespace {

struct Shape {
  int64_t B, T, H, G, D;
};

struct Inputs {
  at::Tensor q, k, v, cotangent;
  Inputs(const Shape& s, uint64_t key, at::ScalarType type, double size = 1)
      : q(random_tensor({s.B, s.T, s.H, s.D}, key_of(key, "q"), type, size)),
        k(random_tensor({s.B, s.T, s.G, s.D}, key_of(key, "k"), type, size)),
        v(random_tensor({s.B, s.T, s.G, s.D}, key_of(key, "v"), type)),
        cotangent(random_tensor({s.B, s.T, s.H, s.D}, key_of(key, "cotangent"), type)) {}
};

// Documents of 1, 2, 3, ... positions; every sample's borders differ.
at::Tensor documents(int64_t B, int64_t T) {
  at::Tensor document_BT = at::zeros({B, T}, at::kLong);
  for (int64_t b = 0; b < B; ++b) {
    int64_t id = 0, left = 1 + b;
    for (int64_t t = 0; t < T; ++t) {
      document_BT[b][t] = id;
      if (--left == 0) left = 2 + b + ++id;
    }
  }
  return document_BT;
}

using Attention = AttentionResult (*)(const at::Tensor&, const at::Tensor&, const at::Tensor&, const AttentionSpec&);

// Output, log-sum-exp and the gradients of q, k and v.
std::vector<at::Tensor> everything(Attention attend, const Inputs& in, const AttentionSpec& spec, at::ScalarType type) {
  const auto leaf = [&](const at::Tensor& x) {
    return x.to(type, /*non_blocking=*/false, /*copy=*/true).requires_grad_(true);
  };
  const at::Tensor q = leaf(in.q), k = leaf(in.k), v = leaf(in.v);
  const AttentionResult r = attend(q, k, v, spec);
  const auto grads = gradients(r.out_BTHD, in.cotangent.to(type), {q, k, v});
  return {r.out_BTHD, r.lse_BHT, grads[0], grads[1], grads[2]};
}

void check_against_twin(const Shape& shape, const AttentionSpec& spec, at::ScalarType type) {
  REQUIRE(attention_path(spec, type) == AttentionPath::flash);
  const Inputs in(shape, 11, type);
  const auto fast = everything(ops::attention, in, spec, type);
  const auto twin = everything(reference::attention, in, spec, type);
  const auto truth = everything(reference::attention, in, spec, at::kDouble);
  const char* const names[] = {"out", "lse", "dq", "dk", "dv"};
  for (size_t i = 0; i < fast.size(); ++i) {
    INFO(names[i] << " of type " << c10::toString(type) << ", G = " << shape.G << ", T = " << shape.T);
    CHECK(as_accurate_as(fast[i].to(type), twin[i].to(type), truth[i]));
  }
}

struct Named {
  const char* name;
  AttentionSpec spec;
};

std::vector<Named> masks(int64_t B, int64_t T) {
  std::vector<Named> all{{"causal", {}},      {"full", {}},      {"window", {}},
                         {"full window", {}}, {"documents", {}}, {"window and documents", {}}};
  for (Named& one : all) one.spec.scale = 0.3;
  all[1].spec.causal = all[3].spec.causal = false;
  all[2].spec.window = all[3].spec.window = all[5].spec.window = std::min<int64_t>(5, (T + 1) / 2);
  all[4].spec.documents_BT = all[5].spec.documents_BT = documents(B, T);
  return all;
}

}  // namespace

TEST_CASE("flash attention is as accurate as the twin, outputs and every gradient", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const int64_t G = GENERATE(4, 2, 1);
  for (const Named& mask : masks(4, 77)) {
    INFO(mask.name);
    check_against_twin({4, 77, 4, G, 40}, mask.spec, type);
  }
}

TEST_CASE("whole blocks of masked keys do no harm", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for (const Named& mask : masks(1, 600)) {  // keys are taken in blocks of 64
    INFO(mask.name);
    check_against_twin({1, 600, 2, 1, 20}, mask.spec, type);
  }
}

TEST_CASE("attention takes any head width and views of a wider matrix", "[unit]") {
  for (const int64_t D : {1, 12, 33, 80, 256}) check_against_twin({2, 9, 4, 2, D}, {}, at::kFloat);
  AttentionSpec wide;
  wide.window = 1000;  // wider than the sequence: no window
  check_against_twin({2, 9, 4, 2, 16}, wide, at::kFloat);

  const at::Tensor qkv = random_tensor({2, 9, 8 * 16}, 5);
  const auto part = [&](int64_t begin, int64_t heads) {
    return qkv.narrow(2, begin * 16, heads * 16).unflatten(2, {heads, 16});
  };
  const at::Tensor q = part(0, 4), k = part(4, 2), v = part(6, 2);
  const AttentionResult dense = attention(q.contiguous(), k.contiguous(), v.contiguous(), {});
  REQUIRE(at::equal(attention(q, k, v, {}).out_BTHD, dense.out_BTHD));
}

TEST_CASE("a single position attends to itself alone", "[unit]") {
  const Inputs in({3, 1, 4, 4, 8}, 19, at::kFloat);
  AttentionSpec spec;
  spec.scale = 0.3;  // no power of two: both passes must round the logit alike for a weight of exactly 1
  const auto fast = everything(ops::attention, in, spec, at::kFloat);
  REQUIRE(at::equal(fast[0], in.v));
  REQUIRE(at::equal(fast[4], in.cotangent));
  // The softmax of one logit is constant: two products of D terms cancel up to their rounding.
  const double product = largest(in.cotangent) * largest(in.v) * 8 * 8 * std::pow(2.0, -24);
  REQUIRE(largest(fast[2]) <= 2 * product * largest(in.k));
  REQUIRE(largest(fast[3]) <= 2 * product * largest(in.q));
}

TEST_CASE("the twin of attention is the sum that it claims to be", "[unit]") {
  const Shape s{2, 7, 4, 2, 3};
  for (Named mask : masks(s.B, s.T)) {
    for (const bool capped : {false, true}) {
      INFO(mask.name << (capped ? ", capped" : ""));
      AttentionSpec& spec = mask.spec;
      if (capped) spec.softcap = 0.8;
      spec.want_logit_max = true;
      const Inputs in(s, 3, at::kDouble);
      const AttentionResult r = reference::attention(in.q, in.k, in.v, spec);
      const at::Tensor entropy_BHT = reference::attention_entropy(in.q, in.k, spec);
      const at::Tensor count = visible_keys(spec, s.T, at::kCPU);
      std::vector<double> head_max(s.H, -INFINITY);
      double error = 0;
      const auto differ = [&](const at::Tensor& got, double expected) {
        error = std::max(error, std::abs(got.item<double>() - expected));
      };
      for (int64_t b = 0; b < s.B; ++b) for (int64_t h = 0; h < s.H; ++h) for (int64_t i = 0; i < s.T; ++i) {
        std::vector<double> logit(s.T, -INFINITY), out(s.D, 0);
        double total = 0, entropy = 0;
        int64_t n = 0;
        const int64_t g = h / 2;
        for (int64_t j = 0; j < s.T; ++j) {
          if (spec.causal && j > i) continue;
          if (spec.window && std::abs(i - j) >= *spec.window) continue;
          if (spec.documents_BT.defined() && !at::equal(spec.documents_BT[b][i], spec.documents_BT[b][j])) continue;
          logit[j] = spec.scale * (in.q[b][i][h] * in.k[b][j][g]).sum().item<double>();
          if (capped) logit[j] = 0.8 * std::tanh(logit[j] / 0.8);
          total += std::exp(logit[j]);
          head_max[h] = std::max(head_max[h], logit[j]);
          ++n;
        }
        for (int64_t j = 0; j < s.T; ++j) {
          const double p = std::exp(logit[j]) / total;
          if (p > 0) entropy -= p * std::log(p);
          for (int64_t d = 0; d < s.D; ++d) out[d] += p * in.v[b][j][g][d].item<double>();
        }
        for (int64_t d = 0; d < s.D; ++d) differ(r.out_BTHD[b][i][h][d], out[d]);
        differ(r.lse_BHT[b][h][i], std::log(total));
        differ(entropy_BHT[b][h][i], entropy);
        REQUIRE((count.dim() == 1 ? count[i] : count[b][0][i]).item<int64_t>() == n);
      }
      for (int64_t h = 0; h < s.H; ++h) differ(r.logit_max_H[h], head_max[h]);
      CHECK(error < 1e-13);  // a few dozen additions of numbers of size 1 in float64
    }
  }
}

TEST_CASE("the gradients of attention's twin are those of finite differences", "[unit]") {
  const Shape s{1, 4, 2, 1, 2};
  const Inputs in(s, 4, at::kDouble);
  for (Named mask : masks(s.B, s.T)) {
    for (const double cap : {0.0, 0.7}) {
      for (const double dropout : {0.0, 0.4}) {
        INFO(mask.name << ", cap " << cap << ", dropout " << dropout);
        if (cap > 0) mask.spec.softcap = cap;
        mask.spec.dropout = dropout;
        mask.spec.dropout_key = 9;
        mask.spec.samples_B = at::arange(s.B, at::kLong);
        const auto f = [&](const std::vector<at::Tensor>& x) {
          return attention(x[0], x[1], x[2], mask.spec).out_BTHD;
        };
        CHECK(gradient_error(f, {in.q, in.k, in.v}) < 1e-7);
      }
    }
  }
}

TEST_CASE("causal outputs and their entropies ignore the future", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16, at::kDouble);
  const Inputs in({2, 40, 4, 2, 16}, 6, type), other({2, 40, 4, 2, 16}, 7, type);
  const auto later = [](const at::Tensor& first, const at::Tensor& rest) {
    return at::cat({first.narrow(1, 0, 25), rest.narrow(1, 25, 15)}, 1);
  };
  for (const bool capped : {false, true}) {
    AttentionSpec spec;
    if (capped) spec.softcap = 5;
    const at::Tensor q = later(in.q, other.q), k = later(in.k, other.k), v = later(in.v, other.v);
    const auto one = attention(in.q, in.k, in.v, spec), two = attention(q, k, v, spec);
    REQUIRE(at::equal(one.out_BTHD.narrow(1, 0, 25), two.out_BTHD.narrow(1, 0, 25)));
    REQUIRE_FALSE(at::equal(one.out_BTHD, two.out_BTHD));
    const auto past = [&](const at::Tensor& entropy_BHT) { return entropy_BHT.narrow(2, 0, 25); };
    REQUIRE(at::equal(past(attention_entropy(in.q, in.k, spec)), past(attention_entropy(q, k, spec))));
  }
}

TEST_CASE("documents in one sequence are attended as if each were alone", "[unit]") {
  const Inputs in({1, 30, 2, 1, 16}, 8, at::kDouble);
  AttentionSpec spec, alone;
  spec.documents_BT = at::cat({at::zeros({12}, at::kLong), at::ones({18}, at::kLong)}).unsqueeze(0);
  const at::Tensor together = attention(in.q, in.k, in.v, spec).out_BTHD;
  const auto part = [&](int64_t begin, int64_t size) {
    const auto cut = [&](const at::Tensor& x) { return x.narrow(1, begin, size); };
    return attention(cut(in.q), cut(in.k), cut(in.v), alone).out_BTHD;
  };
  REQUIRE(largest(together - at::cat({part(0, 12), part(12, 18)}, 1)) < 1e-14);
}

TEST_CASE("entropy by the mean key equals the entropy of the weights, and is 0 for one visible key", "[unit]") {
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const Named& mask : masks(4, 77)) {
      INFO(mask.name << " " << c10::toString(type));
      const Inputs in({4, 77, 4, 2, 40}, 12, type);
      const at::Tensor fast = attention_entropy(in.q, in.k, mask.spec);
      const at::Tensor q = in.q.to(at::kDouble), k = in.k.to(at::kDouble);
      const at::Tensor truth = reference::attention_entropy(q, k, mask.spec);
      const at::Tensor twin = reference::attention_entropy(in.q, in.k, mask.spec);
      REQUIRE(fast.scalar_type() == at::kFloat);
      // The entropy is the difference of two numbers of the logits' size, so an ulp is an ulp of these.
      const double size = largest(reference::attention(q, k, k, mask.spec).lse_BHT);
      CHECK(largest(fast - truth) <= 2 * largest(twin - truth) + 4 * ulp(size, at::kFloat));
      const at::Tensor most = visible_keys(mask.spec, 77, at::kCPU).log();
      REQUIRE((fast >= 0).logical_and(fast <= most).all().item<bool>());
      if (mask.spec.causal) REQUIRE(largest(fast.select(2, 0)) == 0);
    }
  }
}

TEST_CASE("entropy under soft-cap is that of the capped weights", "[unit]") {
  const Inputs in({2, 20, 4, 2, 8}, 13, at::kFloat);
  AttentionSpec spec;
  spec.softcap = 0.5;
  REQUIRE(at::equal(attention_entropy(in.q, in.k, spec), reference::attention_entropy(in.q, in.k, spec)));
  AttentionSpec plain;
  REQUIRE(largest(attention_entropy(in.q, in.k, spec) - attention_entropy(in.q, in.k, plain)) > 0.1);
  plain.dropout = 0.5;  // entropy is taken before dropout
  REQUIRE(at::equal(attention_entropy(in.q, in.k, plain), attention_entropy(in.q, in.k, {})));
}

TEST_CASE("the largest log-sum-exp lies between the largest logit and that plus log n", "[unit]") {
  for (const double size : {0.1, 1.0, 10.0}) {
    for (const Named& mask : masks(2, 50)) {
      AttentionSpec spec = mask.spec;
      const Inputs in({2, 50, 4, 2, 16}, 14, at::kFloat, size);
      const at::Tensor bound_H = attention(in.q, in.k, in.v, spec).lse_BHT.amax({0, 2});
      spec.want_logit_max = true;
      const at::Tensor exact_H = attention(in.q, in.k, in.v, spec).logit_max_H;
      REQUIRE((bound_H >= exact_H - 4 * ulp(largest(exact_H), at::kFloat)).all().item<bool>());
      REQUIRE((bound_H <= exact_H + std::log(50.0)).all().item<bool>());
    }
  }
}

TEST_CASE("the exact largest logit is that of the scores", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  for (const Named& mask : masks(40, 77)) {
    INFO(mask.name);
    const Inputs in({40, 77, 4, 2, 40}, 20, type);
    AttentionSpec spec = mask.spec;
    spec.want_logit_max = true;
    const at::Tensor truth = reference::attention(in.q.to(at::kDouble), in.k.to(at::kDouble), in.v.to(at::kDouble), spec).logit_max_H;
    const at::Tensor twin = reference::attention(in.q, in.k, in.v, spec).logit_max_H.to(at::kFloat);
    CHECK(as_accurate_as(attention(in.q, in.k, in.v, spec).logit_max_H, twin, truth));
  }
}

TEST_CASE("what is measured carries no gradient", "[unit]") {
  const Inputs in({1, 5, 2, 1, 8}, 15, at::kFloat);
  const at::Tensor q = in.q.clone().requires_grad_(true);
  for (const bool exact : {false, true}) {
    AttentionSpec spec;
    spec.want_logit_max = exact;
    const AttentionResult r = attention(q, in.k, in.v, spec);
    REQUIRE(r.out_BTHD.requires_grad());
    REQUIRE_FALSE(r.lse_BHT.requires_grad());
    REQUIRE(r.logit_max_H.defined() == exact);
    if (exact) REQUIRE_FALSE(r.logit_max_H.requires_grad());
  }
  REQUIRE_FALSE(attention_entropy(q, in.k, {}).requires_grad());
}

TEST_CASE("dropped weights are those of the counter-based mask", "[unit]") {
  const Inputs in({2, 6, 2, 2, 4}, 16, at::kFloat);
  AttentionSpec spec;
  spec.dropout = 0.5;
  spec.dropout_key = 77;
  spec.samples_B = at::tensor(std::vector<int64_t>{5, 8});
  // With the unit matrix as values the output is the matrix of weights.
  const at::Tensor v = at::eye(6).unsqueeze(1).expand({2, 6, 2, 6}).contiguous();
  const at::Tensor q = at::constant_pad_nd(in.q, {0, 2}), k = at::constant_pad_nd(in.k, {0, 2});
  AttentionSpec plain;
  plain.kernels = Kernels::reference;
  const at::Tensor kept = attention(q, k, v, plain).out_BTHD, dropped = attention(q, k, v, spec).out_BTHD;
  const at::Tensor mask_BHTT = dropout_masks(at::empty({2, 2, 6, 6}), 0.5, 77, spec.samples_B);
  REQUIRE(at::equal(dropped, kept * mask_BHTT.transpose(1, 2)));
  REQUIRE(at::equal(dropped, attention(q, k, v, spec).out_BTHD));
  spec.samples_B = at::tensor(std::vector<int64_t>{5, 9});  // another sample, another mask; the first one keeps its own
  REQUIRE(at::equal(dropped[0], attention(q, k, v, spec).out_BTHD[0]));
  REQUIRE_FALSE(at::equal(dropped[1], attention(q, k, v, spec).out_BTHD[1]));
  spec.dropout_key = 78;
  REQUIRE_FALSE(at::equal(dropped, attention(q, k, v, spec).out_BTHD));
}

TEST_CASE("huge logits give a finite output and gradient", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const Inputs in({2, 33, 2, 1, 16}, 17, type, 1000);
  for (const auto& x : everything(ops::attention, in, {}, type)) REQUIRE(at::isfinite(x).all().item<bool>());
}

TEST_CASE("one predicate chooses the path and says why", "[unit]") {
  const auto reason_of = [](const AttentionSpec& spec, at::ScalarType type, at::DeviceType device = at::kCPU) {
    std::string reason;
    const AttentionPath path = attention_path(spec, type, &reason, device);
    REQUIRE((path == AttentionPath::flash) == reason.empty());
    return reason;
  };
  AttentionSpec plain, capped, dropping, exact, twin;
  plain.window = 4;
  plain.documents_BT = documents(1, 4);
  capped.softcap = 30;
  dropping.dropout = 0.1;
  exact.want_logit_max = true;
  twin.kernels = Kernels::reference;
  REQUIRE(reason_of(plain, at::kFloat) == "");
  REQUIRE(reason_of(plain, at::kBFloat16) == "");
  REQUIRE(reason_of(plain, at::kDouble) == "float64");
  REQUIRE(reason_of(plain, at::kFloat, at::kCUDA) == "this device");
  REQUIRE(reason_of(capped, at::kFloat) == "soft-cap");
  REQUIRE(reason_of(dropping, at::kFloat) == "dropout of attention weights");
  REQUIRE(reason_of(exact, at::kFloat) == "");
  REQUIRE(reason_of(twin, at::kFloat) == "kernels: reference");

  plain.kernels = capped.kernels = dropping.kernels = exact.kernels = Kernels::fused;
  REQUIRE(reason_of(plain, at::kFloat) == "");
  REQUIRE(reason_of(exact, at::kFloat) == "");
  REQUIRE_THROWS_AS(attention_path(plain, at::kDouble), UsageError);
  REQUIRE_THROWS_AS(attention_path(dropping, at::kFloat), UsageError);
  REQUIRE_THROWS_WITH(attention_path(capped, at::kFloat),
                      "kernels: fused: attention has no fused kernel for soft-cap; use kernels: auto or reference");
}

TEST_CASE("shapes that do not fit are a bug", "[unit]") {
  const Inputs in({1, 5, 4, 2, 8}, 18, at::kFloat);
  REQUIRE_THROWS_AS(attention(in.q.narrow(2, 0, 3), in.k, in.v, {}), Bug);
  REQUIRE_THROWS_AS(attention(in.q, in.k, in.v.narrow(1, 0, 4), {}), Bug);
  REQUIRE_THROWS_AS(attention(in.q.to(at::kBFloat16), in.k, in.v, {}), Bug);
}
