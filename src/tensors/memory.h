// Step memory: large CPU blocks are kept from step to step instead of going back to the kernel, since fresh pages cost about
// 0.4 ms per MB in page faults (DESIGN section 7). Installed once at start as c10's CPU allocator.
#pragma once

#include <cstdint>

namespace quell {

void keep_step_memory();

struct MemoryUse {
  uint64_t in_use = 0;  // bytes handed out now
  uint64_t peak = 0;    // largest in_use so far
  uint64_t kept = 0;    // free blocks held for reuse
};
MemoryUse memory_use();

}  // namespace quell
