#include "data/resize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace quell {
namespace {

// The weights with which source pixels make one pixel of the result: they add up to 1.
struct Taps {
  int64_t first = 0;
  std::vector<float> weights;
};

// For one direction. Source pixel i covers [i, i + 1); pixel j of the result covers the `scale` wide part that begins at
// j * scale, and the triangle over its middle reaches max(scale, 1) to each side.
std::vector<Taps> taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  std::vector<Taps> all(static_cast<size_t>(to));
  for (int64_t j = 0; j < to; ++j) {
    const double middle = (static_cast<double>(j) + 0.5) * scale;
    const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::floor(middle - reach)));
    const auto end = std::min<int64_t>(from, static_cast<int64_t>(std::ceil(middle + reach)));
    Taps& one = all[static_cast<size_t>(j)];
    std::vector<double> weights;
    double sum = 0;
    for (int64_t i = first; i < end; ++i) {
      const double weight = 1 - std::abs(static_cast<double>(i) + 0.5 - middle) / reach;
      if (weight <= 0) continue;
      if (weights.empty()) one.first = i;
      weights.push_back(weight);
      sum += weight;
    }
    for (const double weight : weights) one.weights.push_back(static_cast<float>(weight / sum));
  }
  return all;
}

// One row of the crop, made `size` pixels wide.
void shrink_row(const uint8_t* row, const std::vector<Taps>& across, int64_t channels, float* out) {
  for (const Taps& one : across) {
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t* at = row + one.first * channels + c;
      float sum = 0;
      for (const float weight : one.weights) {
        sum += weight * static_cast<float>(*at);
        at += channels;
      }
      *out++ = sum;
    }
  }
}

}  // namespace

std::vector<float> resized(const Pixels& image, const Rectangle& crop, int64_t size) {
  require(crop.width > 0 && crop.height > 0 && crop.left >= 0 && crop.top >= 0 && crop.left + crop.width <= image.width &&
              crop.top + crop.height <= image.height && size > 0,
          "resized: a crop outside the image");
  const std::vector<Taps> across = taps(crop.width, size), down = taps(crop.height, size);
  const int64_t width = size * image.channels;
  std::vector<float> rows(static_cast<size_t>(crop.height * width)), out(static_cast<size_t>(size * width), 0.0f);
  for (int64_t y = 0; y < crop.height; ++y) {
    const uint8_t* row = image.values.data() + ((crop.top + y) * image.width + crop.left) * image.channels;
    shrink_row(row, across, image.channels, rows.data() + y * width);
  }
  for (int64_t y = 0; y < size; ++y) {
    const Taps& one = down[static_cast<size_t>(y)];
    float* to = out.data() + y * width;
    for (size_t i = 0; i < one.weights.size(); ++i) {
      const float weight = one.weights[i];
      const float* from = rows.data() + (one.first + static_cast<int64_t>(i)) * width;
      for (int64_t x = 0; x < width; ++x) to[x] += weight * from[x];
    }
  }
  return out;
}

}  // namespace quell
