#include "data/random_source.h"

#include "base/error.h"
#include "base/random.h"

namespace quell {

uint64_t training_key(uint64_t seed, const std::string& kind) { return key_of(seed, kind + " training"); }
uint64_t evaluation_key(const std::string& set, const std::string& kind) { return key_of(key_of(0, kind + " evaluation"), set); }

void draw_ids(uint64_t key, int64_t sample, int64_t ids, int64_t count, int64_t* out) {
  for (int64_t i = 0; i < count; i += 4) {
    const auto bits = philox(key, static_cast<uint64_t>(sample), static_cast<uint64_t>(i / 4));
    for (int64_t j = i; j < count && j < i + 4; ++j) {
      out[j] = static_cast<int64_t>(uint64_t{bits[static_cast<size_t>(j - i)]} * static_cast<uint64_t>(ids) >> 32);
    }
  }
}

HostBatch RandomSource::read(int64_t first, int64_t count) const {
  HostBatch batch;
  batch.samples = count;
  batch.context = context_;
  std::vector<int64_t> tokens(static_cast<size_t>(context_) + 1);
  for (int64_t sample = first; sample < first + count; ++sample) {
    draw_ids(key_, sample, config_.vocabulary, context_ + 1, tokens.data());
    batch.inputs.insert(batch.inputs.end(), tokens.begin(), tokens.end() - 1);
    batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
    batch.positions.push_back(sample);
  }
  return batch;
}

HostBatch FixedRandom::read(int64_t first, int64_t count) const {
  require(first >= 0 && count >= 0 && first + count <= count_, "FixedRandom: samples outside the set");
  return source_.read(first, count);
}

}  // namespace quell
