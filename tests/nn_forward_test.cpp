// What the modules draw in a forward pass.
#include <catch2/catch.hpp>

#include <ATen/ATen.h>

#include <set>

#include "nn/forward.h"
#include "tensors/fill.h"

namespace quell {

TEST_CASE("no two places of a forward pass draw the same dropout mask", "[unit]") {
  Forward forward;
  forward.dropout_key = 7;
  std::set<uint64_t> keys{dropout_key(forward, places::embedding)};
  constexpr int64_t layers = 100;
  for (int64_t layer = 0; layer < layers; ++layer) {
    INFO(layer);
    CHECK(keys.insert(dropout_key(forward, places::attention_weights(layer))).second);
    CHECK(keys.insert(dropout_key(forward, places::attended(layer))).second);
    CHECK(keys.insert(dropout_key(forward, places::transformed(layer))).second);
  }
  CHECK(keys.size() == 1 + 3 * layers);
}

TEST_CASE("dropout acts in training only, by the mask of its place and samples", "[unit]") {
  Forward forward;
  forward.dropout_key = 7;
  forward.samples_B = at::tensor({4, 9}, at::kLong);
  const at::Tensor x = at::arange(1, 61, at::kFloat).view({2, 5, 6});
  CHECK(at::equal(dropout(forward, x, 0.5, places::attended(1)), x));
  forward.training = true;
  CHECK(at::equal(dropout(forward, x, 0, places::attended(1)), x));
  const at::Tensor mask = dropout_masks(x, 0.5, dropout_key(forward, places::attended(1)), forward.samples_B);
  CHECK(at::equal(dropout(forward, x, 0.5, places::attended(1)), x * mask));
  CHECK_FALSE(at::equal(dropout(forward, x, 0.5, places::attended(2)), x * mask));
}

}  // namespace quell
