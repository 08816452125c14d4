// Which freed blocks of step memory are kept, which are handed out again, and which go back to the system. The allocator
// (tensors/memory.cpp) applies these rules to memory, the ledger (tensors/ledger.h) to numbers.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace quell {

inline constexpr size_t kept_from = size_t{64} << 10;  // smaller blocks are malloc's
inline constexpr size_t page = 4096;
inline constexpr size_t huge_page = size_t{2} << 20;
inline constexpr size_t header_bytes = 64;  // before the bytes handed out

// Eight classes in every power of two: at most an eighth of a block is unused.
inline size_t size_class(size_t bytes) {
  const size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}
inline size_t mapped_bytes(size_t capacity) { return (capacity + header_bytes + page - 1) / page * page; }
// What is held, in use or not, never exceeds 5/4 of the largest use so far, and 64 MiB.
inline size_t most_held(size_t largest_use) { return largest_use / 4 * 5 + (size_t{64} << 20); }

// A Block has `capacity` (bytes that a reuse may ask for), `mapped` (bytes of its mapping) and `freed_at`. Owns nothing.
template <class Block>
class KeptBlocks {
 public:
  void add(const Block& block) { held_ += block.mapped; }  // a new one, in use

  // The smallest kept block that holds `capacity` and is at most an eighth larger, or null.
  Block* take(size_t capacity) {
    const auto found = kept_.lower_bound(capacity);
    if (found == kept_.end() || found->first > capacity + capacity / 8) return nullptr;
    return remove(std::prev(kept_.upper_bound(found->first)));  // the latest: its pages are the likeliest to be in the caches
  }

  void keep(Block* block) {
    kept_.emplace(block->capacity, block);
    block->freed_at = ++clock_;
    kept_bytes_ += block->mapped;
  }

  // Takes the kept block unused for longest out of what is held while that is above `limit`; else, or where none is kept, null.
  Block* oldest_above(size_t limit) {
    if (held_ <= limit || kept_.empty()) return nullptr;
    const auto older = [](const auto& a, const auto& b) { return a.second->freed_at < b.second->freed_at; };
    Block* const block = remove(std::min_element(kept_.begin(), kept_.end(), older));
    held_ -= block->mapped;
    return block;
  }

  size_t kept() const { return kept_bytes_; }

 private:
  Block* remove(typename std::multimap<size_t, Block*>::iterator at) {
    Block* const block = at->second;
    kept_.erase(at);
    kept_bytes_ -= block->mapped;
    return block;
  }

  std::multimap<size_t, Block*> kept_;  // by capacity; a class's latest block last
  uint64_t clock_ = 0;
  size_t kept_bytes_ = 0, held_ = 0;
};

}  // namespace quell
