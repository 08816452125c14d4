#include "data/resize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace quell {
namespace {

// The weights with which source pixels make the pixels of one direction of the result: pixel j takes weights [begin[j], begin[j +
// 1]), which add up to 1, from source pixel first[j] on.
struct Taps {
  std::vector<int64_t> first, begin{0};
  std::vector<float> weights;
};

// Source pixel i covers [i, i + 1); pixel j of the result covers the `scale` wide part that begins at j * scale, and the triangle
// over its middle reaches max(scale, 1) to each side.
Taps make_taps(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to), reach = std::max(scale, 1.0);
  Taps taps;
  std::vector<double> weights;
  for (int64_t j = 0; j < to; ++j) {
    const double middle = (static_cast<double>(j) + 0.5) * scale;
    const auto low = std::max<int64_t>(0, static_cast<int64_t>(std::floor(middle - reach)));
    const auto end = std::min<int64_t>(from, static_cast<int64_t>(std::ceil(middle + reach)));
    weights.clear();
    double sum = 0;
    for (int64_t i = low; i < end; ++i) {
      const double weight = 1 - std::abs(static_cast<double>(i) + 0.5 - middle) / reach;
      if (weight <= 0) continue;
      if (weights.empty()) taps.first.push_back(i);
      weights.push_back(weight);
      sum += weight;
    }
    for (const double weight : weights) taps.weights.push_back(static_cast<float>(weight / sum));
    taps.begin.push_back(static_cast<int64_t>(taps.weights.size()));
  }
  return taps;
}

// One row of the crop, made as many pixels wide as there are taps.
template <int channels>
void shrink_row(const uint8_t* row, const Taps& taps, float* out) {
  for (size_t j = 0; j < taps.first.size(); ++j) {
    const uint8_t* at = row + taps.first[j] * channels;
    float sums[channels] = {};
    for (int64_t i = taps.begin[j]; i < taps.begin[j + 1]; ++i) {
      const float weight = taps.weights[static_cast<size_t>(i)];
      for (int c = 0; c < channels; ++c) sums[c] += weight * static_cast<float>(*at++);
    }
    out = std::copy_n(sums, channels, out);
  }
}

}  // namespace

std::vector<float> resized(const Pixels& image, const Rectangle& crop, int64_t size) {
  require(crop.width > 0 && crop.height > 0 && crop.left >= 0 && crop.top >= 0 && crop.left + crop.width <= image.width &&
              crop.top + crop.height <= image.height && size > 0,
          "resized: a crop outside the image");
  require(image.channels == 1 || image.channels == 3, "resized: an image is grey or of three colours");
  const Taps across = make_taps(crop.width, size), down = make_taps(crop.height, size);
  const int64_t width = size * image.channels;
  std::vector<float> rows(static_cast<size_t>(crop.height * width)), out(static_cast<size_t>(size * width), 0.0f);
  for (int64_t y = 0; y < crop.height; ++y) {
    const uint8_t* row = image.values.data() + ((crop.top + y) * image.width + crop.left) * image.channels;
    image.channels == 1 ? shrink_row<1>(row, across, rows.data() + y * width)
                        : shrink_row<3>(row, across, rows.data() + y * width);
  }
  for (int64_t y = 0; y < size; ++y) {
    const auto j = static_cast<size_t>(y);
    float* to = out.data() + y * width;
    const float* from = rows.data() + down.first[j] * width;
    for (int64_t i = down.begin[j]; i < down.begin[j + 1]; ++i) {
      const float weight = down.weights[static_cast<size_t>(i)];
      for (int64_t x = 0; x < width; ++x) to[x] += weight * from[x];
      from += width;
    }
  }
  return out;
}

}  // namespace quell
