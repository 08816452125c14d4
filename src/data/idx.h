// IDX files, in which MNIST and its relatives come: unsigned bytes with 1 dimension (labels) or 3 (images), plain or in gzip,
// told apart by content. Strict: the header, the size it promises and the bytes that are there must agree to the byte. What
// other element types and dimensions the format knows is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quell {

struct IdxImages {
  int64_t count = 0, height = 0, width = 0;
  std::vector<uint8_t> values;  // image after image, row after row
};

constexpr int64_t idx_limit = int64_t{8} << 30;  // bytes that are kept in memory

// Both throw DataError with the path, the byte (of what is unpacked), what is wanted and what is there. The size is checked
// against `limit` from the header alone, so that neither a damaged header nor a compressed bomb fills the memory.
IdxImages read_idx_images(const std::string& path, int64_t limit = idx_limit);
std::vector<uint8_t> read_idx_labels(const std::string& path, int64_t limit = idx_limit);

// Where label `index` stands in its file.
constexpr int64_t idx_label_offset(int64_t index) { return 8 + index; }

}  // namespace quell
