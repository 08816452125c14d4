// Writes one split of prepared data: shards of ids, a mask of scored tokens where wanted, and tokens.json last.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/sidecar.h"

namespace quell {

class SplitWriter {
 public:
  struct Sizes {
    int64_t shard_bytes = int64_t{1} << 30;
    int64_t block_bytes = default_block_bytes;
  };
  // Makes `folder`. `masked`: whether a mask of scored tokens is written.
  SplitWriter(std::string folder, std::string split, const Vocabulary& vocabulary, bool masked, Sizes sizes);

  void begin_document();
  void append(std::span<const uint32_t> ids, bool scored);
  int64_t tokens() const { return tokens_; }
  void finish();

 private:
  void open_shard();
  void close_shard();

  std::string folder_;
  bool masked_;
  int64_t shard_tokens_, tokens_ = 0;
  SideCar side_car_;
  std::optional<BlockWriter> ids_, scored_;
};

}  // namespace quell
