// Sources of training and evaluation batches. A source is a pure function from a range of samples to a batch, so
// seeking is free and a batch can be made again (to find the first bad tensor); prefetching only calls it ahead of
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/batch.h"
#include "data/tokens.h"
#include "data/windows.h"

namespace quell {

struct Shard {  // whose part of every step this is
  int rank = 0;
  int size = 1;
};

struct TokenData {
  static constexpr const char* kind_name = "tokens";
  std::string train;
  int64_t batch = 8;
  TokenType type = TokenType::automatic;
  bool cross_documents = true;
  BlockCheck verify = BlockCheck::read;
};
template <class V>
void describe(V& v, TokenData& c) {
  v.field("train", c.train, help("A folder that `quell data prepare` wrote, or a raw .bin file of tokens."));
  v.field("batch", c.batch, help("Samples of one optimiser step over the whole world.").unit("samples").at_least(1).at_most(1e9));
  v.field("type", c.type, help("Integer type of a raw .bin file."));
  v.field("cross_documents", c.cross_documents, help("Whether a target or attention may cross a document's border."));
  v.field("verify", c.verify, help("When a block (64 MiB) of the data is compared with its hash; `quell data verify` compares all at once."));
}

// Plain memory that one thread fills and another turns into tensors.
struct HostBatch {
  int64_t samples = 0, context = 0;
  std::vector<int64_t> inputs, targets, documents, positions;  // documents may be empty
  std::vector<int64_t> answers = {};  // as in Batch; empty but in the copy task's evaluation
  // Of images, which have one target a sample and neither context nor inputs: sample after sample, channel after channel.
  std::vector<float> images = {};
  int64_t channels = 0, height = 0, width = 0;
};
Batch to_tensors(HostBatch&& host);  // takes over the memory, no copy

class TokenSource {
 public:
  TokenSource(TokenSet set, int64_t context, uint64_t seed, bool cross_documents);
  // Samples [first, first + count) in training order.
  // Pure and thread-safe. A target is -1 where the data say that it is not scored, and where cross_documents is false
  // and it begins another document; `documents` is filled only in the latter case, for sets of more than one document.
  HostBatch read(int64_t first, int64_t count) const;
  int64_t epoch_samples() const;
  const TokenSet& tokens() const { return set_; }

 private:
  TokenSet set_;
  Windows windows_;
  int64_t context_;
  bool cross_documents_;
};

// A fixed set for evaluation: `count` windows, or as many as fit the text side by side where that is fewer or count is
// 0; read in batches. The constructors throw DataError where the text is too short for a window, or where
// cross_documents is false and the data do not say where documents begin.
class FixedTokens {
 public:
  FixedTokens(TokenSet set, int64_t context, int64_t count, bool cross_documents);
  int64_t samples() const { return count_; }
  const TokenSet& tokens() const { return set_; }
  HostBatch read(int64_t first, int64_t count) const;

 private:
  TokenSet set_;
  int64_t context_, count_ = 0;
  bool cross_documents_;
};

}  // namespace quell
