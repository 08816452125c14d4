// The sets of CPU kernels: all that this machine can run give one answer, up to the contraction of a * b + c.
#include <catch2/catch.hpp>

#include "ops/isa.h"
#include "support.h"

using namespace quell;
using namespace quell::testing;

namespace {

// Rows of several lengths, none a multiple of every vector, with a neighbour behind each row that must stay untouched.
const std::vector<int64_t> widths{1, 3, 4, 15, 16, 17, 63, 64, 65, 100, 200};

// The results of every set for the same work, beside those of the first one.
void compare(const std::function<at::Tensor(const ops::CpuKernels&)>& work, at::ScalarType type) {
  const auto& sets = ops::available_cpu_kernels();
  const at::Tensor first = work(sets[0]).to(at::kDouble);
  for (const auto& set : sets) {
    INFO(set.name << " " << type);
    const at::Tensor y = work(set).to(at::kDouble);
    CHECK(at::equal(y.isnan(), first.isnan()));
    CHECK(largest(at::nan_to_num(y - first, 0)) <= 8 * ulp(largest(at::nan_to_num(first, 0)), type));
  }
}

}  // namespace

TEST_CASE("the baseline set is always there, and every set has a name of its own", "[unit]") {
  const auto& sets = ops::available_cpu_kernels();
  REQUIRE(sets.size() >= 1);
  CHECK(std::string(sets[0].name) == "baseline");
  for (size_t i = 1; i < sets.size(); ++i) CHECK(std::string(sets[i].name) != sets[i - 1].name);
}

TEST_CASE("every set normalises alike and writes no more than its rows", "[unit]") {
  constexpr int64_t count = 9;
  for (const int64_t width : widths) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const auto statistics : {ops::NormStatistics::centred, ops::NormStatistics::plain, ops::NormStatistics::l2}) {
        if (width == 1 && statistics == ops::NormStatistics::centred) continue;  // 0 / sqrt(eps) of rounding errors
        const at::Tensor x = random_tensor({count, width}, 1, type), dy = random_tensor({count, width}, 2, type);
        const at::Tensor factor = uniform_tensor({width}, 3, 0.5, 1.5);
        const ops::Rows rows{count, 1, width, width};
        compare(
            [&](const ops::CpuKernels& set) {
              at::Tensor y = at::full({count * width + 1}, 7, x.options()), dx = y.clone();
              at::Tensor size = at::zeros({count}), mean = at::zeros({count}), d_factor = at::zeros({width + 1}),
                         d_bias = at::zeros({width + 1});
              set.norm.forward(
                  {x.const_data_ptr(), rows, width, factor.const_data_ptr<float>(), nullptr, 0, statistics,
                   ops::NormRounding::once, 1e-6f, y.mutable_data_ptr(), size.data_ptr<float>(), mean.data_ptr<float>()},
                  type == at::kBFloat16, 0, count);
              set.norm.backward({x.const_data_ptr(), dy.const_data_ptr(), rows, rows, width, factor.const_data_ptr<float>(), 0,
                                 statistics, size.const_data_ptr<float>(), mean.const_data_ptr<float>(), dx.mutable_data_ptr()},
                                type == at::kBFloat16, 0, count, d_factor.data_ptr<float>(), d_bias.data_ptr<float>());
              CHECK(y[-1].item<float>() == 7);
              CHECK(dx[-1].item<float>() == 7);
              CHECK(d_factor[-1].item<float>() == 0);
              CHECK(d_bias[-1].item<float>() == 0);
              return at::cat({y, dx, d_factor.to(type), d_bias.to(type)});
            },
            type);
      }
    }
  }
}

TEST_CASE("every set activates alike, through the whole range of numbers", "[unit]") {
  const at::Tensor far = at::tensor({-INFINITY, -1e30f, -104.f, -88.f, -1e-40f, 0.f, 1e-40f, 88.f, 104.f, 1e15f, INFINITY, NAN});
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::cat({far, random_tensor({501}, 4, at::kFloat, 3)}).to(type), up = random_tensor({513}, 5, type);
    for (const auto& choice : choices<MlpKind>) {
      compare(
          [&](const ops::CpuKernels& set) {
            at::Tensor y = at::full({514}, 7, x.options()), d_up = at::zeros({514}, x.options());
            const bool gate = is_gated(choice.value);
            ops::ActivationRows rows{choice.value,
                                     type == at::kBFloat16,
                                     513,
                                     x.const_data_ptr(),
                                     gate ? up.const_data_ptr() : nullptr,
                                     up.const_data_ptr(),
                                     {1, 1, 513, 513},
                                     {1, 1, 513, 513},
                                     {1, 1, 513, 513},
                                     y.mutable_data_ptr(),
                                     nullptr};
            set.activation.forward(rows, 0, 1);
            CHECK(y[-1].item<float>() == 7);
            at::Tensor d_gate = at::zeros({514}, x.options());
            rows.out = d_gate.mutable_data_ptr();
            rows.d_up = d_up.mutable_data_ptr();
            set.activation.backward(rows, 0, 1);
            // The 1e15 squared would set the scale of all others.
            return at::cat({y.slice(0, 12, 513), d_gate.slice(0, 12, 513), d_up.slice(0, 12, 513), at::sign(y.slice(0, 0, 12))});
          },
          type);
    }
  }
}

TEST_CASE("every set rotates alike and writes no more than its rows", "[unit]") {
  for (const int64_t pairs : {1, 3, 8, 13, 16, 40}) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const bool interleaved : {false, true}) {
        const int64_t width = 2 * pairs + 3;
        const at::Tensor x = random_tensor({6, width}, 6, type), angle = random_tensor({2, pairs}, 7);
        const at::Tensor cosine = angle.cos(), sine = angle.sin();
        compare(
            [&](const ops::CpuKernels& set) {
              at::Tensor y = at::full({6 * width + 1}, 7, x.options());
              set.rotary.rotate(
                  {x.const_data_ptr(), y.mutable_data_ptr(), cosine.const_data_ptr<float>(), sine.const_data_ptr<float>(), 2, 3,
                   width, pairs, 6 * width, 3 * width, width, type == at::kBFloat16, interleaved, 1},
                  0, 2);
              CHECK(y[-1].item<float>() == 7);
              return y;
            },
            type);
      }
    }
  }
}
