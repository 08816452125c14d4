// What a model did with chosen samples of a set, as tensors for other programs: inputs, targets, predictions, logits, and every
// layer's attention weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/evaluate.h"

namespace quell {

// Throws UsageError where one of the samples is not in the set.
void require_samples(const EvaluationData& set, const std::vector<int64_t>& samples);

// Writes a safetensors file. S samples, L layers, H heads, T tokens, N scored positions of the whole set, V vocabulary or classes:
//   samples [S] (their numbers in the set), targets [S] or [S, T], predictions like targets, attention [S, L, H, T, T]
//   images: images [S, channels, image, image] as the model saw them, logits [S, V]; text: tokens [S, T]
void dump_samples(const std::string& path, const RunConfig& config, const Objective& objective, const EvaluationData& set,
                  const std::vector<int64_t>& samples);

// Predictions of a whole set in order: predictions and targets [N], -1 where not scored.
class Predictions {
 public:
  void add(const Batch& batch, const at::Tensor& logits_NV);
  void write(const std::string& path) const;

 private:
  std::vector<at::Tensor> predictions_, targets_;
};

}  // namespace quell
