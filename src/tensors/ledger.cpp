#include "tensors/ledger.h"

#include <algorithm>

#include "base/error.h"

namespace quell {

// Pages become resident when they are first written. Blocks of 2 MiB and more are asked to be of huge pages, which come whole;
// what is behind the last whole one is of small pages.
size_t Ledger::resident(const Block& block) {
  const size_t bytes = block.touched + header_bytes;
  const size_t huge = (bytes + huge_page - 1) / huge_page * huge_page;
  return huge <= block.mapped ? huge : (bytes + page - 1) / page * page;
}

void Ledger::touch(Block& block) {
  if (block.touched >= block.requested) return;
  resident_ -= block.touched == 0 ? 0 : resident(block);
  block.touched = block.requested;
  resident_ += resident(block);
}

Ledger::Memory Ledger::make(double bytes) {
  require(bytes >= 0, "ledger: a size that no tensor has");
  // 16 TiB stand for whatever is larger: no machine has them, and sums of hundreds of thousands of such stay within 64 bits.
  const auto size = static_cast<size_t>(std::min(bytes, 0x1p44));
  Block* block = nullptr;
  if (size < kept_from) {
    all_.push_back({.requested = size});  // malloc's: neither rounded nor kept, as far as these few bytes are worth
    block = &all_.back();
    resident_ += size;
  } else {
    block = large(size);
  }
  in_use_ += size;
  peak_ = std::max(peak_, in_use_);
  peak_resident_ = std::max(peak_resident_, resident_);
  return {block, [this](Block* freed) { release(freed); }};
}

Ledger::Block* Ledger::large(size_t bytes) {
  const size_t capacity = size_class(bytes), mapped = mapped_bytes(capacity);
  Block* block = blocks_.take(capacity);
  if (block == nullptr) {
    const size_t limit = most_held(std::max(peak_, in_use_ + bytes));
    while (Block* const unmapped = blocks_.oldest_above(limit > mapped ? limit - mapped : 0)) resident_ -= resident(*unmapped);
    all_.push_back({.capacity = capacity, .mapped = mapped});
    block = &all_.back();
    blocks_.add(*block);
  }
  block->requested = bytes;
  touch(*block);
  return block;
}

void Ledger::release(Block* block) {
  in_use_ -= block->requested;
  if (block->capacity > 0) {
    blocks_.keep(block);
  } else {
    resident_ -= block->requested;
  }
}

}  // namespace quell
