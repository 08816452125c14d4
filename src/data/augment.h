// From a decoded image of any size to the square that the model takes: what is cut out, how it is resized, moved and flipped.
// What chance decides is drawn from (seed, position in training) alone, so a sample is the same for any number of ranks,
// threads and micro-batches, and another one in the next epoch. Colours are not changed.
#pragma once

#include <cstdint>
#include <vector>

#include "config/describe.h"
#include "data/pixels.h"

namespace quell {

struct AugmentConfig {
  bool flip = false;
  int64_t crop_padding = 0;
  Optional<double> random_resized_crop;
};
template <class V>
void describe(V& v, AugmentConfig& c) {
  v.field("flip", c.flip, help("Mirrors a sample, left for right, with probability 1/2."));
  v.field("crop_padding", c.crop_padding,
          help("Moves each sample by up to so many pixels up or down, and left or right; what "
               "comes in is black.")
              .unit("pixels")
              .at_least(0)
              .at_most(4096));
  v.field("random_resized_crop", c.random_resized_crop,
          help("Cuts out a rectangle of at least this share of the area, 3:4 to 4:3, "
               "and resizes it; none: the largest square in the middle.")
              .above(0)
              .at_most(1));
}

// What is done with one image.
struct View {
  Rectangle crop;
  int64_t right = 0, down = 0;  // by how many pixels of the result it is moved
  bool flip = false;
};

// The square in the middle whose side is `share` (in (0, 1]) of the shorter side, at least one pixel.
View plain_view(int64_t width, int64_t height, double share);
// plain_view() with what `augment` adds for the sample at `position` of training.
View drawn_view(const AugmentConfig& augment, int64_t width, int64_t height, double share, uint64_t seed, int64_t position);

// The crop, resized to size x size by a triangle filter as wide as the area that falls on a pixel (so shrinking averages and
// enlarging interpolates linearly; nothing outside the crop is used), with the channels wanted (grey is copied into each, colour
// becomes grey as 0.299 R + 0.587 G + 0.114 B), then flipped, then moved. Row after row of one channel, then the next:
// values in [0, 255], not rounded.
std::vector<float> render(const Pixels& image, const View& view, int64_t size, int64_t channels);

}  // namespace quell
