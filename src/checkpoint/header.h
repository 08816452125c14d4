// The JSON header of a safetensors file: text to checked entries and back. Stricter than the format's own library:
// names that stand twice, unknown fields, numbers with a sign, fraction or exponent, and absurd sizes are errors. Opens
// no file.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/safetensors.h"

namespace quell {

struct StoredTensor {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes after the header
};

struct Header {
  std::vector<StoredTensor> tensors;  // by name
  Metadata metadata;
};

inline constexpr uint64_t largest_header = 100'000'000;  // the library's own limit

// Throws CheckpointError, which begins with `path`, unless the tensors tile the `data_bytes` bytes after the header
// without holes or overlaps. Takes memory in proportion to the text, whatever the text says.
Header parse_header(std::string_view text, uint64_t data_bytes, const std::string& path);

// Padded with spaces, so that the data begin at a multiple of 8. Throws Bug where parse_header would refuse it.
std::string header_text(const std::vector<StoredTensor>& tensors, const Metadata& metadata);

}  // namespace quell
