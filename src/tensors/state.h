// What a stateful part hands over to be saved and takes back to be restored: named tensors and named numbers. Names are
// joined with '.', a prefix a part: "optimizer.first_moment", "data.position".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>

namespace quell {

struct State {
  std::map<std::string, at::Tensor> tensors;
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;
};

}  // namespace quell
