#include "dist/gradients.h"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace quell {

// A leaf's accumulator, and with it its hook, lives only as long as somebody holds it. By decltype, since its type changes with LibTorch's version.
struct GradientReducer::Hooks {
  std::vector<decltype(torch::autograd::impl::grad_accumulator(at::Tensor()))> accumulators;
};

GradientReducer::GradientReducer(const World& world, at::Tensor gradients, std::vector<Bucket> buckets)
    : world_(world), gradients_(std::move(gradients)), buckets_(std::move(buckets)), missing_(buckets_.size(), 0) {
  require(gradients_.dim() == 1 && gradients_.is_contiguous(), "gradient reducer: not one flat buffer");
  int64_t left = gradients_.numel();
  for (const Bucket& bucket : buckets_) {
    require(bucket.range.end == left && bucket.range.begin <= left && bucket.range.begin >= 0,
            "gradient reducer: buckets must cover the gradients once, from the last element to the first");
    left = bucket.range.begin;
  }
  require(left == 0, "gradient reducer: buckets must reach the first element");
  if (world_.size() == 1) return;  // nothing leaves

  hooks_ = std::make_unique<Hooks>();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const at::Tensor& parameter : buckets_[i].parameters) {
      auto accumulator = torch::autograd::impl::grad_accumulator(parameter);
      accumulator->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [this, i](const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>&) {
            if (armed_) {
              --missing_[i];
              launch_ready();
            }
            return outputs;
          }));
      hooks_->accumulators.push_back(std::move(accumulator));
    }
  }
}

GradientReducer::~GradientReducer() = default;

void GradientReducer::arm() {
  for (size_t i = 0; i < buckets_.size(); ++i) missing_[i] = static_cast<int64_t>(buckets_[i].parameters.size());
  armed_ = true;
}

void GradientReducer::launch_ready() {
  while (pending_.size() < buckets_.size() && missing_[pending_.size()] == 0) {
    const Range range = buckets_[pending_.size()].range;
    pending_.push_back(world_.begin_sum(gradients_.narrow(0, range.begin, range.size())));
  }
}

void GradientReducer::finish() {
  armed_ = false;
  std::fill(missing_.begin(), missing_.end(), 0);
  launch_ready();
  for (const Pending& pending : pending_) pending.wait();
  pending_.clear();
}

std::vector<Bucket> buckets_of(const Arena& arena, const ParameterList& parameters, int64_t bytes) {
  const int64_t wanted = bytes / static_cast<int64_t>(arena.gradients().element_size());
  std::vector<Bucket> buckets;
  for (size_t i = arena.units().size(); i-- > 0;) {
    const Range unit = arena.units()[i];
    if (buckets.empty() || buckets.back().range.size() >= wanted) {
      buckets.push_back({unit, {}});
    } else {
      buckets.back().range.begin = unit.begin;
    }
  }
  for (const Parameter& parameter : parameters) {
    if (parameter.frozen) continue;
    const int64_t at = arena.range(parameter).begin;
    const auto its = std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& bucket) { return at >= bucket.range.begin && at < bucket.range.end; });
    its->parameters.push_back(parameter.compute);
  }
  return buckets;
}

}  // namespace quell
