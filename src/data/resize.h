// Resizing with a triangle filter. Plain loops over memory: it runs on prefetch threads, where LibTorch's operators are not
// called.
#pragma once

#include <cstdint>
#include <vector>

#include "data/pixels.h"

namespace quell {

// The crop as size x size pixels, channels side by side as in the image; values in [0, 255], not rounded. A side that has the
// wanted length is copied exactly.
std::vector<float> resized(const Pixels& image, const Rectangle& crop, int64_t size);

}  // namespace quell
