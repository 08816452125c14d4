// A decoded image, and a part of one.
#pragma once

#include <cstdint>
#include <vector>

namespace quell {

struct Pixels {
  int64_t width = 0, height = 0, channels = 0;  // 1: grey, 3: red, green, blue
  std::vector<uint8_t> values;                  // row after row, the channels of a pixel side by side
};

struct Rectangle {
  int64_t left = 0, top = 0, width = 0, height = 0;
};

}  // namespace quell
