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

// How the format spells the type. Throws Bug where it has no name there.
const char* stored_name(at::ScalarType type);

// What a file begins with, up to the first tensor: the header's length and the header, padded with spaces so that the data begin
// at a multiple of 8. The tensors follow one another in the order given: their begin and end are set here. Throws Bug where
// parse_header would refuse it.
std::string head_of(std::vector<StoredTensor>& tensors, const Metadata& metadata);

}  // namespace quell
