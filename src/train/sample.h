// Text from a model: tokens drawn one by one from the softmax of the last position's logits. Used by evaluation's samples and by
// `quell generate`. Draws are counters keyed by the seed: nothing of training's randomness is touched.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/decoder.h"
#include "train/run.h"

namespace quell {

struct SampleOptions {
  int64_t tokens = 200;
  double temperature = 1;        // 0: always the largest logit
  std::optional<int64_t> top_k;  // only the k largest
  double top_p = 1;              // only the smallest set of tokens whose probability reaches p
  uint64_t seed = 1;
};

// Continues `prompt` (at least one token) by options.tokens; `each` is called with every new token. The model sees the last
// `context` tokens; each token costs one forward pass over them.
std::vector<int64_t> sample(const Decoder& model, Kernels kernels, std::vector<int64_t> prompt, const SampleOptions& options,
                            const std::function<void(int64_t)>& each = {});

// The text that evaluation shows: evaluate.prompt (or a new line) continued by evaluate.sample tokens. Data without a
// vocabulary: the ids. `each` is called with every token.
std::string sample_text(const Run& run, const std::function<void(int64_t)>& each = {});

}  // namespace quell
