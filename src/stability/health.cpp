// Packs health sums into two vectors and unpacks their combination into maxima and means. What the numbers say of the
// run is alarms.cpp's matter.
#include "stability/health.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"

namespace quell {

namespace {

using Layer = HealthReport::Layer;
using Numbers = std::vector<double>;

// What travels, layer by layer, in this order: the maxima in one vector, in the other the sums and then, for each sum,
// the count that it is divided by.
struct Maximum {
  at::Tensor LayerHealth::*measured;
  Numbers Layer::*reported;
};
struct Mean {
  at::Tensor LayerHealth::*sum;
  double LayerHealth::*count;
  Numbers Layer::*reported;
  bool of_squares;
};
constexpr Maximum all_maxima[] = {{&LayerHealth::bound_H, &Layer::logit_bound},
                                  {&LayerHealth::logit_max_H, &Layer::logit_max}};
constexpr Mean all_means[] = {
    {&LayerHealth::entropy_H, &LayerHealth::entropy_rows, &Layer::entropy, false},
    {&LayerHealth::entropy_relative_H, &LayerHealth::entropy_rows, &Layer::entropy_relative, false},
    {&LayerHealth::q_square_H, &LayerHealth::q_count, &Layer::q_rms, true},
    {&LayerHealth::k_square_G, &LayerHealth::k_count, &Layer::k_rms, true},
    {&LayerHealth::mass_H, &LayerHealth::mass_rows, &Layer::copy_mass, false}};

// One device-to-host copy of all that was measured; the counts are known to the host already.
at::Tensor gather(const std::vector<at::Tensor>& measured, const Numbers& counts) {
  const at::Tensor host = at::tensor(counts, at::kDouble);
  return measured.empty() ? host : at::cat({at::cat(measured).to(at::kCPU, at::kDouble), host});
}

Numbers take(const at::Tensor& vector, int64_t& position, int64_t count) {
  require(position + count <= vector.numel(), "health: vectors of another shape");
  const double* first = vector.const_data_ptr<double>() + position;
  position += count;
  return Numbers(first, first + count);
}

}  // namespace

HealthVectors pack(const HealthSums& sums) {
  std::vector<at::Tensor> maxima, measured;
  Numbers counts;
  for (const LayerHealth& layer : sums.layers) {
    for (const Maximum& field : all_maxima) {
      if ((layer.*field.measured).defined()) maxima.push_back(layer.*field.measured);
    }
    for (const Mean& field : all_means) {
      if (!(layer.*field.sum).defined()) continue;
      measured.push_back(layer.*field.sum);
      counts.push_back(layer.*field.count);
    }
  }
  return {gather(maxima, {}), gather(measured, counts)};
}

HealthSums nothing_of(HealthSums shape) {
  for (LayerHealth& layer : shape.layers) {
    for (const Maximum& field : all_maxima) {
      if ((layer.*field.measured).defined()) layer.*field.measured = at::full_like(layer.*field.measured, -std::numeric_limits<double>::infinity());
    }
    for (const Mean& field : all_means) {
      if ((layer.*field.sum).defined()) layer.*field.sum = at::zeros_like(layer.*field.sum);
      layer.*field.count = 0;
    }
  }
  return shape;
}

HealthReport unpack(const HealthSums& shape, const HealthVectors& combined) {
  HealthReport report;
  report.layers.resize(shape.layers.size());
  int64_t maximum = 0, sum = 0, count = 0;
  for (const LayerHealth& layer : shape.layers) {
    for (const Mean& field : all_means) count += (layer.*field.sum).defined() ? (layer.*field.sum).numel() : 0;
  }
  for (size_t i = 0; i < shape.layers.size(); ++i) {
    const LayerHealth& layer = shape.layers[i];
    for (const Maximum& field : all_maxima) {
      if (!(layer.*field.measured).defined()) continue;
      report.layers[i].*field.reported = take(combined.maxima, maximum, (layer.*field.measured).numel());
    }
    for (const Mean& field : all_means) {
      if (!(layer.*field.sum).defined()) continue;
      Numbers numbers = take(combined.sums, sum, (layer.*field.sum).numel());
      const double divisor = take(combined.sums, count, 1)[0];
      if (divisor == 0) continue;
      for (double& number : numbers) number = field.of_squares ? std::sqrt(number / divisor) : number / divisor;
      report.layers[i].*field.reported = std::move(numbers);
    }
  }
  require(maximum == combined.maxima.numel() && count == combined.sums.numel(), "health: vectors of another shape");
  return report;
}

}  // namespace quell
