#include "train/totals.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

namespace quell {
namespace {
enum : int64_t { objective_at, cross_entropy_at, z_at, max_z_at, log_z_at, correct_at, top5_at, count_at, samples_at, exact_at, numbers };
}  // namespace

void LossTotals::add(const ops::LossSums& s) {
  const at::Tensor zero = at::zeros({}, s.objective.options().dtype(at::kDouble));
  const auto number = [&](const at::Tensor& x) { return x.defined() ? x.detach().to(at::kDouble) : zero; };
  const at::Tensor sums = at::stack({number(s.objective), number(s.cross_entropy), number(s.z), number(s.max_z),
                                     number(s.log_z_sum), number(s.correct), number(s.top5), number(s.count),
                                     number(s.samples), number(s.exact)});
  const at::Tensor largest = number(s.log_z_max);
  sums_ = sums_.defined() ? sums_ + sums : sums;
  maximum_ = maximum_.defined() ? at::maximum(maximum_, largest) : largest;
}

void LossTotals::reduce(const World& world) {
  if (!sums_.defined()) {  // a rank that had no sample of the set
    sums_ = at::zeros({numbers}, at::kDouble);
    maximum_ = at::full({}, -std::numeric_limits<double>::infinity(), at::kDouble);
  }
  world.sum(sums_);
  world.max(maximum_);
}

double LossTotals::mean(int64_t index) const { return sums_[index].item<double>() / std::max(1.0, targets()); }
double LossTotals::targets() const { return sums_[count_at].item<double>(); }
double LossTotals::objective() const { return mean(objective_at); }
double LossTotals::cross_entropy() const { return mean(cross_entropy_at); }
double LossTotals::z() const { return mean(z_at); }
double LossTotals::max_z() const { return mean(max_z_at); }
double LossTotals::log_z_mean() const { return mean(log_z_at); }
double LossTotals::log_z_max() const { return maximum_.item<double>(); }
double LossTotals::accuracy() const { return mean(correct_at); }
double LossTotals::top5() const { return mean(top5_at); }
double LossTotals::exact_match() const { return sums_[exact_at].item<double>() / std::max(1.0, sums_[samples_at].item<double>()); }

}  // namespace quell
