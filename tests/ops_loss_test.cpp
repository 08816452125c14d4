// Losses on output logits: the kernels against the twin, the twin against formulas in float64, and laws. N rows, V
// vocabulary.
#include <catch2/catch.hpp>

#include <ATen/Parallel.h>

#include <string>

#include "base/error.h"
#include "ops/isa.h"
#include "ops/loss.h"
#include "ops/reference.h"
#include "support.h"

using namespace quell;
using namespace quell::ops;
using quell::testing::as_accurate_as;
using quell::testing::gradient_error;
using quell::testing::gradients;
using quell::testing::largest;
using quell::testing::random_tensor;

namespace {

// Every fifth row is not scored.
at::Tensor targets_for(int64_t N, int64_t V, uint64_t key) {
  at::Tensor targets_N = at::empty({N}, at::kLong);
  for (int64_t i = 0; i < N; ++i) {
    const auto drawn = static_cast<int64_t>(philox(key_of(key, "targets"), i)[0] % static_cast<uint64_t>(V));
    targets_N[i] = i % 5 == 3 ? ignored_target : drawn;
  }
  return targets_N;
}

// Logits whose rows are padded, as ops::output_logits makes them.
at::Tensor padded(const at::Tensor& logits_NV) {
  const int64_t N = logits_NV.size(0), V = logits_NV.size(1), width = (V + 15) / 16 * 16 + 16;
  at::Tensor rows = at::full({N, width}, 1e30, logits_NV.options()).narrow(1, 0, V);
  rows.copy_(logits_NV);
  return rows;
}

struct Named {
  const char* name;
  LossOptions options;
};

std::vector<Named> all_options() {
  const auto capped = [](LossOptions o, double cap) { return o.softcap = cap, o; };
  const LossOptions every{.label_smoothing = 0.1, .z = 1e-2, .max_z = 2e-3};
  return {{"plain", {}},
          {"smoothing", {.label_smoothing = 0.1}},
          {"z", {.z = 1e-2}},
          {"max-z", {.max_z = 1e-2}},
          {"cap 2", capped({}, 2)},
          {"cap 30", capped({}, 30)},
          {"cap 1000", capped({}, 1000)},
          {"all", every},
          {"all, capped", capped(every, 5)}};
}

using Loss = LossSums (*)(const at::Tensor&, const at::Tensor&, const LossOptions&);

struct Measured {
  LossSums sums;
  at::Tensor gradient_NV;
};

Measured measure(Loss loss, const at::Tensor& logits_NV, const at::Tensor& targets_N, const LossOptions& options) {
  const at::Tensor leaf = padded(logits_NV).requires_grad_(true);
  Measured m;
  m.sums = loss(leaf, targets_N, options);
  m.gradient_NV = gradients(m.sums.objective, at::full({}, 0.37, m.sums.objective.options()), {leaf})[0];
  return m;
}

std::vector<at::Tensor> scalars(const LossSums& s) {
  return {s.objective, s.cross_entropy, s.z, s.max_z, s.log_z_sum, s.log_z_max, s.correct};
}

}  // namespace

TEST_CASE("the kernels' gradient is as accurate as the twin's", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const auto [N, V] = GENERATE(table<int64_t, int64_t>({{300, 63}, {40, 501}, {5, 10'003}, {700, 16}}));
  for (const auto& [name, options] : all_options()) {
    INFO(name << ", " << c10::toString(type) << " [" << N << ", " << V << "]");
    const at::Tensor logits_NV = random_tensor({N, V}, 1, type, 4), targets_N = targets_for(N, V, 1);
    const auto fast = measure(ops::output_loss, logits_NV, targets_N, options);
    const auto twin = measure(reference::output_loss, logits_NV, targets_N, options);
    const auto truth = measure(reference::output_loss, logits_NV.to(at::kDouble), targets_N, options);
    CHECK(as_accurate_as(fast.gradient_NV, twin.gradient_NV, truth.gradient_NV));
  }
}

TEST_CASE("the kernels' sums are as accurate as the twin's over twenty seeds", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16);
  const int64_t V = GENERATE(5, 63, 2003);
  for (const auto& [name, options] : all_options()) {
    std::vector<std::vector<at::Tensor>> fast(7), twin(7), truth(7);
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const at::Tensor logits_NV = random_tensor({6, V}, seed, type, 3), targets_N = targets_for(6, V, seed);
      const auto put = [&](auto& into, const LossSums& sums) {
        REQUIRE(sums.count.item<int64_t>() == 5);
        for (size_t i = 0; i < into.size(); ++i) {
          if (scalars(sums)[i].defined()) into[i].push_back(scalars(sums)[i].detach());
        }
      };
      put(fast, ops::output_loss(padded(logits_NV), targets_N, options));
      put(twin, reference::output_loss(logits_NV, targets_N, options));
      put(truth, reference::output_loss(logits_NV.to(at::kDouble), targets_N, options));
    }
    for (size_t i = 0; i < fast.size(); ++i) {
      INFO(name << ", " << c10::toString(type) << ", V = " << V << ", sum " << i);
      REQUIRE(fast[i].size() == truth[i].size());
      if (!fast[i].empty()) CHECK(as_accurate_as(at::stack(fast[i]), at::stack(twin[i]), at::stack(truth[i])));
    }
  }
}

TEST_CASE("every instruction set of this machine computes the loss as accurately as the twin", "[unit]") {
  const int64_t N = 20, V = 517;
  LossOptions options{.label_smoothing = 0.1, .z = 1e-2, .max_z = 1e-2, .softcap = 4.0};
  const at::Tensor logits_NV = random_tensor({N, V}, 2, at::kFloat, 4), targets_N = targets_for(N, V, 2);
  const auto twin = measure(reference::output_loss, logits_NV, targets_N, options);
  const auto truth = measure(reference::output_loss, logits_NV.to(at::kDouble), targets_N, options);
  for (const CpuKernels& set : available_cpu_kernels()) {
    INFO(set.name);
    at::Tensor x_NV = padded(logits_NV);
    std::vector<double> numbers(4 * N);
    std::vector<int64_t> argmax(N);
    LossRows rows{false, V, x_NV.stride(0), x_NV.data_ptr(), targets_N.const_data_ptr<int64_t>(), 4, 0.1, 1e-2, 1e-2,
                  &numbers[0], &numbers[N], &numbers[2 * N], &numbers[3 * N], argmax.data(), 0.37};
    set.loss.forward(rows, 0, N);
    set.loss.backward(rows, 0, 7);
    set.loss.backward(rows, 7, N);
    CHECK(as_accurate_as(x_NV, twin.gradient_NV, truth.gradient_NV));
  }
}

TEST_CASE("the twin of the loss is the formula that it claims to be", "[unit]") {
  const int64_t N = 4, V = 6;
  const double s = 0.1, z = 0.3, max_z = 0.2, cap = 1.5;
  const at::Tensor logits_NV = random_tensor({N, V}, 3, at::kDouble, 2), targets_N = targets_for(N, V, 3);
  double ce = 0, z_sum = 0, max_sum = 0, lse_sum = 0, lse_max = -INFINITY, correct = 0;
  for (int64_t i = 0; i < N; ++i) {
    const int64_t target = targets_N[i].item<int64_t>();
    if (target == ignored_target) continue;
    double total = 0, mean = 0, most = -INFINITY;
    int64_t place = 0;
    std::vector<double> x(V);
    for (int64_t j = 0; j < V; ++j) {
      x[j] = cap * std::tanh(logits_NV[i][j].item<double>() / cap);
      total += std::exp(x[j]);
      mean += x[j] / V;
      if (x[j] > most) most = x[j], place = j;
    }
    const double lse = std::log(total);
    ce += lse - (1 - s) * x[target] - s * mean;
    z_sum += z * lse * lse;
    max_sum += max_z * most * most;
    lse_sum += lse;
    lse_max = std::max(lse_max, lse);
    correct += place == target;
  }
  const LossOptions options{.label_smoothing = s, .z = z, .max_z = max_z, .softcap = cap};
  const LossSums got = output_loss(logits_NV, targets_N, options);
  const std::vector<double> expected{ce + z_sum + max_sum, ce, z_sum, max_sum, lse_sum, lse_max, correct};
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(scalars(got)[i].item<double>() == Approx(expected[i]).epsilon(1e-14));
    CHECK(scalars(got)[i].scalar_type() == at::kDouble);
  }
  CHECK(got.count.item<int64_t>() == 3);
}

TEST_CASE("the gradients of the loss twin are those of finite differences", "[unit]") {
  const at::Tensor logits_NV = random_tensor({4, 7}, 4, at::kDouble, 2), targets_N = targets_for(4, 7, 4);
  for (const auto& [name, options] : all_options()) {
    INFO(name);
    const LossOptions chosen = options;
    const auto f = [&](const std::vector<at::Tensor>& x) { return output_loss(x[0], targets_N, chosen).objective; };
    CHECK(gradient_error(f, {logits_NV}) < 1e-7);
  }
}

TEST_CASE("the gradients of z-loss, max-z loss and label smoothing have their closed forms", "[unit]") {
  const int64_t N = 6, V = 40;
  const double z = 0.2, max_z = 0.3, s = 0.25;
  const at::Tensor logits_NV = random_tensor({N, V}, 5, at::kFloat, 2), targets_N = at::arange(N, at::kLong);
  const at::Tensor x = logits_NV.to(at::kDouble), p = at::softmax(x, 1), y = at::one_hot(targets_N, V).to(at::kDouble);
  const at::Tensor top = at::one_hot(x.argmax(1), V).to(at::kDouble) * x.amax(1, true);
  const auto differs = [&](const LossOptions& options, const at::Tensor& expected) {
    return largest(measure(ops::output_loss, logits_NV, targets_N, options).gradient_NV / 0.37 - expected);
  };
  const double few_ulp = 8 * std::pow(2.0, -23);  // of numbers below 8, through three fp32 operations
  CHECK(differs({.z = z}, p * (1 + 2 * z * at::logsumexp(x, {1}, true)) - y) < few_ulp);
  CHECK(differs({.max_z = max_z}, p - y + 2 * max_z * top) < few_ulp);
  CHECK(differs({.label_smoothing = s}, p - (1 - s) * y - s / V) < few_ulp);
}

TEST_CASE("rows that are not scored count for nothing and get a zero gradient", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16, at::kDouble);
  const LossOptions options{.label_smoothing = 0.1, .z = 1e-3, .max_z = 1e-3};
  const at::Tensor logits_NV = random_tensor({10, 33}, 6, type, 2), targets_N = targets_for(10, 33, 6);
  const auto some = measure(ops::output_loss, logits_NV, targets_N, options);
  const at::Tensor scored = at::nonzero(targets_N != ignored_target).squeeze(1);
  const auto select = [&](const at::Tensor& x) { return x.index_select(0, scored); };
  const auto only = measure(ops::output_loss, select(logits_NV), select(targets_N), options);
  REQUIRE(some.sums.count.item<int64_t>() == 8);
  for (size_t i = 0; i < 7; ++i) REQUIRE(at::equal(scalars(some.sums)[i], scalars(only.sums)[i]));
  REQUIRE(at::equal(select(some.gradient_NV), only.gradient_NV));
  for (int64_t i : {3, 8}) REQUIRE(largest(some.gradient_NV[i]) == 0);

  const auto none = measure(ops::output_loss, logits_NV, at::full({10}, ignored_target, at::kLong), options);
  REQUIRE(none.sums.count.item<int64_t>() == 0);
  for (size_t i : {0, 1, 2, 3, 4, 6}) REQUIRE(scalars(none.sums)[i].item<double>() == 0);
  REQUIRE(none.sums.log_z_max.item<double>() == -INFINITY);
  REQUIRE(largest(none.gradient_NV) == 0);
  const auto empty = measure(ops::output_loss, logits_NV.narrow(0, 0, 0), targets_N.narrow(0, 0, 0), options);
  REQUIRE(empty.sums.objective.item<double>() == 0);
}

TEST_CASE("a coefficient of zero is the same in every bit as no term, and a term changes no other", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16, at::kDouble);
  const at::Tensor logits_NV = random_tensor({9, 50}, 7, type, 2), targets_N = targets_for(9, 50, 7);
  const auto plain = measure(ops::output_loss, logits_NV, targets_N, {});
  REQUIRE_FALSE(plain.sums.z.defined());
  REQUIRE_FALSE(plain.sums.max_z.defined());
  REQUIRE(at::equal(plain.sums.objective, plain.sums.cross_entropy));
  const auto zero = measure(ops::output_loss, logits_NV, targets_N, {.label_smoothing = 0, .z = 0, .max_z = 0});
  REQUIRE(at::equal(zero.gradient_NV, plain.gradient_NV));
  const auto with = measure(ops::output_loss, logits_NV, targets_N, {.z = 0.1, .max_z = 0.1});
  REQUIRE(at::equal(with.sums.cross_entropy, plain.sums.cross_entropy));
  REQUIRE(with.sums.objective.item<double>() ==
          Approx(with.sums.cross_entropy.item<double>() + with.sums.z.item<double>() + with.sums.max_z.item<double>()));
}

TEST_CASE("loss and gradient depend on the number of threads in no bit", "[unit]") {
  const at::Tensor logits_NV = random_tensor({97, 3000}, 8, at::kFloat, 2), targets_N = targets_for(97, 3000, 8);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = measure(ops::output_loss, logits_NV, targets_N, {.z = 1e-3});
  at::set_num_threads(3);
  const auto three = measure(ops::output_loss, logits_NV, targets_N, {.z = 1e-3});
  at::set_num_threads(before);
  REQUIRE(at::equal(one.sums.objective, three.sums.objective));
  REQUIRE(at::equal(one.gradient_NV, three.gradient_NV));
}

TEST_CASE("of equal largest logits the first one counts", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kDouble);
  for (const int64_t V : {3, 16, 70, 200}) {
    at::Tensor logits_NV = at::zeros({V, V}, type);  // every row ties everywhere
    const auto tied = measure(ops::output_loss, logits_NV, at::arange(V, at::kLong), {});
    REQUIRE(tied.sums.correct.item<double>() == 1);
    logits_NV.fill_diagonal_(1);
    REQUIRE(ops::output_loss(logits_NV, at::arange(V, at::kLong), {}).correct.item<double>() == static_cast<double>(V));
  }
}

TEST_CASE("a sample is exact where all its scored targets are right, and counts where it has one", "[unit]") {
  const at::Tensor logits = at::eye(4).index_select(0, at::tensor(std::vector<int64_t>{0, 1, 2, 3, 0, 1, 2, 3}));
  const auto counted = [&](const std::vector<int64_t>& targets, int64_t rows) {
    const LossSums sums = output_loss(logits, at::tensor(targets), {.exact_rows = rows});
    return std::pair{sums.exact.item<int64_t>(), sums.samples.item<int64_t>()};
  };
  CHECK(counted({0, 1, 2, 3, 0, 1, 2, 3}, 2) == std::pair<int64_t, int64_t>{4, 4});
  CHECK(counted({0, 1, 2, 0, 3, 1, 0, 0}, 2) == std::pair<int64_t, int64_t>{1, 4});
  CHECK(counted({-1, 1, -1, -1, 0, -1, 0, -1}, 2) == std::pair<int64_t, int64_t>{2, 3});  // the second has no target
  CHECK(counted({0, 1, 2, 3, 0, 1, 2, 0}, 4) == std::pair<int64_t, int64_t>{1, 2});
  CHECK_FALSE(output_loss(logits, at::tensor(std::vector<int64_t>(8, 0)), {}).exact.defined());
  CHECK_THROWS_AS(counted({0, 1, 2, 3, 0, 1, 2, 3}, 3), Bug);
}

TEST_CASE("minus infinity is a probability of zero; what is broken stays visible as a non-finite objective", "[unit]") {
  const auto type = GENERATE(at::kFloat, at::kBFloat16, at::kDouble);
  const LossOptions capped{.softcap = 10.0};
  const auto with = [&](int64_t place, double value) {
    at::Tensor logits_NV = random_tensor({3, 37}, 9, type);
    logits_NV[1][place] = value;
    return logits_NV;
  };
  const at::Tensor targets_N = at::full({3}, 5, at::kLong);
  const auto masked = measure(ops::output_loss, with(36, -INFINITY), targets_N, {});
  REQUIRE(at::isfinite(masked.sums.objective).item<bool>());
  REQUIRE(masked.gradient_NV[1][36].item<double>() == 0);
  REQUIRE(at::isfinite(masked.gradient_NV).all().item<bool>());

  const auto is_finite = [&](const at::Tensor& logits_NV, const LossOptions& options) {
    const auto m = measure(ops::output_loss, logits_NV, targets_N, options);
    return at::isfinite(m.sums.objective).item<bool>() && at::isfinite(m.gradient_NV[0]).all().item<bool>();
  };
  REQUIRE_FALSE(is_finite(with(5, -INFINITY), {}));
  for (int64_t place : {0, 5, 36}) {
    REQUIRE_FALSE(is_finite(with(place, NAN), {}));
    REQUIRE_FALSE(is_finite(with(place, NAN), capped));
    REQUIRE_FALSE(is_finite(with(place, INFINITY), {}));
  }
  at::Tensor nothing_NV = random_tensor({3, 37}, 9, type);
  nothing_NV[1].fill_(-INFINITY);
  REQUIRE_FALSE(is_finite(nothing_NV, {}));
  const auto nan = measure(ops::output_loss, with(20, NAN), targets_N, {});
  REQUIRE(std::isnan(nan.sums.log_z_max.item<double>()));
  REQUIRE(std::isnan(nan.sums.log_z_sum.item<double>()));
}

TEST_CASE("logits in the thousands neither overflow nor lose their loss", "[unit]") {
  at::Tensor logits_NV = random_tensor({40, 300}, 10, at::kFloat, 3000);
  const at::Tensor targets_N = targets_for(40, 300, 10);
  const auto fast = measure(ops::output_loss, logits_NV, targets_N, {});
  const auto twin = measure(reference::output_loss, logits_NV, targets_N, {});
  const auto truth = measure(reference::output_loss, logits_NV.to(at::kDouble), targets_N, {});
  CHECK(as_accurate_as(fast.gradient_NV, twin.gradient_NV, truth.gradient_NV));
  CHECK(as_accurate_as(fast.sums.objective, twin.sums.objective, truth.sums.objective));
}

TEST_CASE("the gradient takes the logits' memory, once, and evaluation leaves it alone", "[unit]") {
  const at::Tensor targets_N = targets_for(6, 20, 11);
  at::Tensor leaf = random_tensor({6, 20}, 11).requires_grad_(true);
  const at::Tensor before = leaf.detach().clone();
  {
    at::NoGradGuard no_gradient;
    REQUIRE_FALSE(output_loss(leaf, targets_N, {}).objective.requires_grad());
  }
  const LossSums sums = output_loss(leaf, targets_N, {});
  REQUIRE(at::equal(leaf, before));
  for (const at::Tensor& part : {sums.cross_entropy, sums.log_z_sum, sums.log_z_max, sums.correct}) {
    REQUIRE_FALSE(part.requires_grad());
  }
  const auto backward = [&] {
    return torch::autograd::grad({sums.objective}, {leaf}, {}, /*retain_graph=*/true)[0];
  };
  REQUIRE(backward().data_ptr() == leaf.data_ptr());
  REQUIRE_THROWS_WITH(backward(), Catch::Contains("holds their gradient already"));
}

TEST_CASE("misuse of output_loss is named", "[unit]") {
  const at::Tensor logits_NV = random_tensor({3, 5}, 12), targets_N = at::zeros({3}, at::kLong);
  REQUIRE_THROWS_AS(output_loss(logits_NV, at::full({3}, 5, at::kLong), {}), Bug);
  REQUIRE_THROWS_AS(output_loss(logits_NV, at::full({3}, -2, at::kLong), {}), Bug);
  REQUIRE_THROWS_AS(output_loss(logits_NV, at::zeros({4}, at::kLong), {}), Bug);
  REQUIRE_THROWS_AS(output_loss(logits_NV, at::zeros({3}, at::kInt), {}), Bug);
  REQUIRE_THROWS_AS(output_loss(logits_NV.to(at::kDouble), targets_N, {.kernels = Kernels::fused}), UsageError);
  REQUIRE(at::equal(output_loss(logits_NV.t().contiguous().t(), targets_N, {}).objective,
                    output_loss(logits_NV, targets_N, {}).objective));
}
