// A caching CPU allocator. Blocks of 64 KiB and more are mapped by size class and kept when freed, by the rules of
// tensors/kept_blocks.h. Smaller ones are malloc's. It knows nothing of tensors, and does not split or merge blocks: a
// training step asks for the same sizes again and again.
#include "tensors/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "tensors/kept_blocks.h"

namespace quell {
namespace {

// Stands in the 64 bytes before the bytes handed out, which keeps these aligned to a cache line.
struct Header {
  size_t requested;  // bytes handed out
  size_t capacity;   // bytes that a reuse may ask for; 0 for malloc's blocks
  size_t mapped;     // bytes of the mapping
  uint64_t freed_at; // by which the oldest kept block is found
};
static_assert(sizeof(Header) <= header_bytes);

Header* header_of(void* data) { return reinterpret_cast<Header*>(static_cast<char*>(data) - header_bytes); }
void* data_of(Header* header) { return reinterpret_cast<char*>(header) + header_bytes; }

// Anonymous memory, aligned to huge pages where it holds one; null where the kernel refuses.
Header* map_block(size_t bytes) {
  const size_t surplus = bytes >= huge_page ? huge_page : 0;
  void* mapped = mmap(nullptr, bytes + surplus, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (surplus == 0) return static_cast<Header*>(mapped);
  char* begin = static_cast<char*>(mapped);
  const size_t head = (huge_page - reinterpret_cast<uintptr_t>(begin) % huge_page) % huge_page;
  if (head > 0) munmap(begin, head);
  munmap(begin + head + bytes, surplus - head);
  madvise(begin + head, bytes, MADV_HUGEPAGE);  // advice only: a kernel without huge pages may refuse it
  return reinterpret_cast<Header*>(begin + head);
}

class StepAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* data = bytes == 0 ? nullptr : data_of(bytes < kept_from ? small_block(bytes) : large_block(bytes));
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  MemoryUse use() {
    std::lock_guard lock(mutex_);
    return {in_use_, peak_, blocks_.kept()};
  }

 private:
  static void release(void* data);
  [[noreturn]] void refuse(size_t bytes);
  Header* small_block(size_t bytes);
  Header* large_block(size_t bytes);
  void give_back(size_t limit);
  void handed_out(size_t bytes);

  std::mutex mutex_;
  KeptBlocks<Header> blocks_;
  std::atomic<uint64_t> in_use_ = 0, peak_ = 0;
};

// Never destroyed: tensors in static storage may be freed after it.
StepAllocator& allocator() {
  static StepAllocator* const instance = new StepAllocator;
  return *instance;
}

void StepAllocator::handed_out(size_t bytes) {
  const uint64_t now = in_use_ += bytes;
  uint64_t peak = peak_;
  while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
  }
}

void StepAllocator::refuse(size_t bytes) {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "memory: the system refused ", bytes, " more bytes with ", in_use_.load(),
                   " in use; a smaller data.batch per micro-batch, model.context or model.width needs less");
}

Header* StepAllocator::small_block(size_t bytes) {
  void* block = nullptr;
  if (posix_memalign(&block, header_bytes, bytes + header_bytes) != 0) refuse(bytes);
  handed_out(bytes);
  return new (block) Header{bytes, 0, 0, 0};
}

Header* StepAllocator::large_block(size_t bytes) {
  if (bytes > PTRDIFF_MAX / 2) refuse(bytes);
  const size_t capacity = size_class(bytes), mapped = mapped_bytes(capacity);
  std::lock_guard lock(mutex_);
  Header* block = blocks_.take(capacity);
  if (block == nullptr) {
    give_back(most_held(std::max<size_t>(peak_, in_use_ + bytes)) - mapped);
    block = map_block(mapped);
    if (block == nullptr) {
      give_back(0);
      block = map_block(mapped);
    }
    if (block == nullptr) refuse(bytes);
    new (block) Header{bytes, capacity, mapped, 0};
    blocks_.add(*block);
  }
  block->requested = bytes;
  handed_out(bytes);
  return block;
}

// Unmaps kept blocks, oldest first, until at most `limit` bytes are held.
void StepAllocator::give_back(size_t limit) {
  while (Header* const block = blocks_.oldest_above(limit)) munmap(block, block->mapped);
}

void StepAllocator::release(void* data) {
  if (data == nullptr) return;
  StepAllocator& self = allocator();
  Header* block = header_of(data);
  self.in_use_ -= block->requested;
  if (block->capacity == 0) {
    std::free(block);
    return;
  }
  std::lock_guard lock(self.mutex_);
  self.blocks_.keep(block);
}

}  // namespace

void keep_step_memory() {
  // malloc's own blocks, of LibTorch's libraries and of small tensors, stay in the process as well.
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  c10::SetCPUAllocator(&allocator(), /*priority=*/100);
}

MemoryUse memory_use() { return allocator().use(); }

}  // namespace quell
