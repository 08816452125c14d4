#include "data/augment.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "data/resize.h"

namespace quell {
namespace {

double unit(uint32_t bits) { return static_cast<double>(bits) * 0x1p-32; }  // [0, 1)

// One of 0 ... count - 1. The bias of a product with 32 bits is below count / 2^32.
int64_t one_of(int64_t count, uint32_t bits) { return static_cast<int64_t>(static_cast<uint64_t>(count) * bits >> 32); }

Rectangle middle(int64_t width, int64_t height, int64_t crop_width, int64_t crop_height) {
  return {(width - crop_width) / 2, (height - crop_height) / 2, crop_width, crop_height};
}

// Uniform in area and in the logarithm of the aspect, so that a crop and its transpose are equally likely. Where the image has
// no room for what was drawn it is drawn again; an image that is too long for any gets its middle at the nearest aspect.
Rectangle resized_crop(double least, int64_t width, int64_t height, uint64_t key, uint64_t position) {
  const double area = static_cast<double>(width) * static_cast<double>(height), widest = 4.0 / 3;
  for (uint64_t attempt = 1; attempt <= 10; ++attempt) {
    const auto bits = philox(key, position, attempt);
    const double wanted = area * (least + (1 - least) * unit(bits[0]));
    const double aspect = std::exp(std::log(widest) * (2 * unit(bits[1]) - 1));
    const int64_t w = std::llround(std::sqrt(wanted * aspect)), h = std::llround(std::sqrt(wanted / aspect));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    return {one_of(width - w + 1, bits[2]), one_of(height - h + 1, bits[3]), w, h};
  }
  const auto w = static_cast<double>(width), h = static_cast<double>(height);
  const auto long_side = [&](double side) { return std::max<int64_t>(1, std::llround(side * widest)); };
  return middle(width, height, std::min(width, long_side(h)), std::min(height, long_side(w)));
}

}  // namespace

View plain_view(int64_t width, int64_t height, double share) {
  require(width > 0 && height > 0 && share > 0 && share <= 1, "plain_view: an image, and a share of it");
  const int64_t side = std::max<int64_t>(1, std::llround(share * static_cast<double>(std::min(width, height))));
  return {middle(width, height, side, side), 0, 0, false};
}

View drawn_view(const AugmentConfig& augment, int64_t width, int64_t height, double share, uint64_t seed, int64_t position) {
  require(position >= 0, "drawn_view: positions are counted from 0");
  const uint64_t key = key_of(seed, "data.augment");
  const auto at = static_cast<uint64_t>(position);
  View view = plain_view(width, height, share);
  if (augment.random_resized_crop) view.crop = resized_crop(*augment.random_resized_crop, width, height, key, at);
  const auto bits = philox(key, at);
  view.flip = augment.flip && (bits[0] & 1) != 0;
  view.right = one_of(2 * augment.crop_padding + 1, bits[1]) - augment.crop_padding;
  view.down = one_of(2 * augment.crop_padding + 1, bits[2]) - augment.crop_padding;
  return view;
}

std::vector<float> render(const Pixels& image, const View& view, int64_t size, int64_t channels) {
  const std::vector<float> square = resized(image, view.crop, size);  // the channels of a pixel side by side
  const int64_t had = image.channels, plane = size * size;
  const bool to_grey = had == 3 && channels == 1;
  std::vector<float> out(static_cast<size_t>(channels * plane), 0.0f);
  const int64_t left = std::max<int64_t>(0, view.right), end = std::min(size, size + view.right);
  for (int64_t y = std::max<int64_t>(0, view.down); y < std::min(size, size + view.down); ++y) {
    const float* row = square.data() + (y - view.down) * size * had;
    for (int64_t c = 0; c < channels; ++c) {
      float* to = out.data() + c * plane + y * size;
      for (int64_t x = left; x < end; ++x) {
        const int64_t column = view.flip ? size - 1 - (x - view.right) : x - view.right;
        const float* from = row + column * had;
        to[x] = to_grey ? 0.299f * from[0] + 0.587f * from[1] + 0.114f * from[2] : from[had == 1 ? 0 : c];
      }
    }
  }
  return out;
}

}  // namespace quell
