// Times ops::output_loss against at::cross_entropy_loss, forward plus backward, interleaved in one process with memory
// kept from call to call; prints medians and their ratio. Not a test: `build/release/bench_loss [threads]`.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "ops/loss.h"
#include "tensors/memory.h"

namespace {

using quell::ops::LossOptions;

double median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// Both get fresh logits by one copy outside of the clock, since ours overwrites them.
template <class F>
double milliseconds(const at::Tensor& logits_NV, F&& loss) {
  const at::Tensor leaf = logits_NV.clone().requires_grad_(true);
  quell::Timer timer;
  const at::Tensor objective = loss(leaf);
  torch::autograd::grad({objective}, {leaf});
  return timer.seconds() * 1e3;
}

void compare(int64_t N, int64_t V, at::ScalarType type, const LossOptions& options, const char* name) {
  const at::Tensor logits_NV = at::randn({N, V}).to(type), targets_N = at::randint(V, {N}, at::kLong);
  const auto ours = [&](const at::Tensor& x) { return quell::ops::output_loss(x, targets_N, options).objective; };
  const auto theirs = [&](const at::Tensor& x) {
    return at::cross_entropy_loss(x, targets_N, {}, at::Reduction::Sum, -100, options.label_smoothing);
  };
  std::vector<double> a, b;
  for (int i = 0; i < 18; ++i) {
    const double ms_ours = milliseconds(logits_NV, ours), ms_theirs = milliseconds(logits_NV, theirs);
    if (i < 3) continue;
    a.push_back(ms_ours);
    b.push_back(ms_theirs);
  }
  std::printf("[%ld, %ld] %s %-12s ours %8.3f ms, LibTorch %8.3f ms, ratio %.2f\n", N, V, c10::toString(type), name,
              median(a), median(b), median(b) / median(a));
}

}  // namespace

int main(int count, char** arguments) {
  quell::keep_step_memory();
  at::set_num_threads(count > 1 ? std::atoi(arguments[1]) : 1);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    for (const auto& [N, V] : {std::pair{256, 50257}, std::pair{768, 63}, std::pair{1024, 32000}}) {
      compare(N, V, type, {}, "plain");
      compare(N, V, type, {.label_smoothing = 0.1}, "smoothing");
    }
  }
  compare(256, 50257, at::kFloat, {.z = 1e-4, .max_z = 1e-4, .softcap = 30.0}, "z, max, cap");
}
