// Images whose class can be seen: 12 x 12 and grey, in three classes: a bar whose height is the class, moved about, on a ground that
// varies.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace quell::testing {

inline constexpr uint32_t tiny_side = 12;

inline std::vector<uint8_t> tiny_image(uint32_t number) {
  const uint32_t label = number % 3, left = number * 7 % 9;
  std::vector<uint8_t> grey;
  for (uint32_t row = 0; row < tiny_side; ++row) {
    for (uint32_t column = 0; column < tiny_side; ++column) {
      const bool bar = row < 3 + 3 * label && column >= left && column < left + 3;
      grey.push_back(bar ? uint8_t{255} : static_cast<uint8_t>((number * 31 + row * 17 + column * 5) % 64));
    }
  }
  return grey;
}

// The IDX pair PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte.
inline void write_tiny_images(const std::string& prefix, uint32_t count) {
  std::ofstream images(prefix + "-images-idx3-ubyte"), labels(prefix + "-labels-idx1-ubyte");
  const auto size = [](std::ofstream& out, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) out.put(static_cast<char>(value >> shift & 255));
  };
  for (std::ofstream* out : {&images, &labels}) size(*out, out == &images ? 0x803 : 0x801);
  size(labels, count);
  for (const uint32_t value : {count, tiny_side, tiny_side}) size(images, value);
  for (uint32_t i = 0; i < count; ++i) {
    labels.put(static_cast<char>(i % 3));
    for (const uint8_t value : tiny_image(i)) images.put(static_cast<char>(value));
  }
}

}  // namespace quell::testing
