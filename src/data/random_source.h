// Tokens drawn uniformly, in which nothing can be learned: for tests, since the loss of any model stays at the log of the
// vocabulary. Nothing is read; sample p is a pure function of (seed, p).
#pragma once

#include <cstdint>
#include <string>

#include "config/describe.h"
#include "data/source.h"

namespace quell {

struct RandomData {
  static constexpr const char* kind_name = "random";
  int64_t batch = 8;
  int64_t vocabulary = 64;
};
template <class V>
void describe(V& v, RandomData& c) {
  v.field("batch", c.batch, help("Samples of one optimiser step over the whole world.").unit("samples").at_least(1).at_most(1e9));
  v.field("vocabulary", c.vocabulary, help("How many tokens there are.").unit("tokens").at_least(1).at_most(1e9));
}

// The keys of drawn data: training's from the seed, an evaluation set's from its name alone, so that runs with other seeds are
// evaluated on the same samples. The two never meet.
uint64_t training_key(uint64_t seed, const std::string& kind);
uint64_t evaluation_key(const std::string& set, const std::string& kind);

// `count` ids in [0, ids), uniform but for 2^-32 of their probability: a function of (key, sample).
void draw_ids(uint64_t key, int64_t sample, int64_t ids, int64_t count, int64_t* out);

class RandomSource {
 public:
  RandomSource(uint64_t key, int64_t context, const RandomData& config) : key_(key), context_(context), config_(config) {}
  // Samples [first, first + count). Pure and thread-safe. Every position is scored.
  HostBatch read(int64_t first, int64_t count) const;
  const RandomData& config() const { return config_; }

 private:
  uint64_t key_;
  int64_t context_;
  RandomData config_;
};

// A fixed set for evaluation: the first `count` samples of its own key.
class FixedRandom {
 public:
  FixedRandom(RandomSource source, int64_t count) : source_(source), count_(count) {}
  HostBatch read(int64_t first, int64_t count) const;
  int64_t samples() const { return count_; }
  const RandomData& config() const { return source_.config(); }

 private:
  RandomSource source_;
  int64_t count_;
};

}  // namespace quell
