// Step memory in numbers: what the allocator (tensors/memory.h) would hold if tensors of these sizes were made and freed in
// this order. It holds none of it, and knows nothing of models.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "tensors/kept_blocks.h"

namespace quell {

class Ledger {
 public:
  struct Block {
    size_t requested = 0;            // 0: nothing, no block was taken
    size_t capacity = 0, mapped = 0; // as in tensors/memory.cpp
    size_t touched = 0;              // the most that was asked for at once: pages behind it were never written
    uint64_t freed_at = 0;
  };
  // The memory of one tensor and of its views; freed with the last copy. Must not outlive the ledger.
  using Memory = std::shared_ptr<Block>;

  Ledger() = default;
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  Memory make(double bytes);
  size_t in_use() const { return in_use_; }       // bytes of tensors that are alive
  size_t peak_in_use() const { return peak_; }
  size_t peak_resident() const { return peak_resident_; }  // with whole pages, and with free blocks that are kept

 private:
  Block* large(size_t bytes);
  void release(Block* block);
  void touch(Block& block);
  static size_t resident(const Block& block);

  std::deque<Block> all_;
  KeptBlocks<Block> blocks_;
  size_t in_use_ = 0, peak_ = 0, resident_ = 0, peak_resident_ = 0;
};

}  // namespace quell
