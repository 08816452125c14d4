// Threads that fill host batches ahead of the step. They call no ATen operator, sleep rather than spin, and run at lower
// priority. Each makes whole batches; these are handed out in order, whoever made them. The position of training is what was
// taken, not what was produced: nothing of the prefetcher is ever saved.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "data/source.h"

namespace quell {

class Prefetch {
 public:
  // make(i) is the i-th batch counted from 0; called in order from `first`, at most `depth` ahead of take(), by up to `threads`
  // of them at once: it must be thread-safe where there are more than one. More threads than `depth` would never run: a bug.
  Prefetch(std::function<HostBatch(int64_t)> make, int64_t first, int depth = 2, int threads = 1);
  ~Prefetch();  // stops and joins
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The next batch; rethrows what make() threw for it, now and at every later call.
  HostBatch take();

 private:
  struct Slot {  // of a batch that is being made, or is made
    HostBatch batch;
    std::exception_ptr failure;
    bool is_ready = false;
  };
  void run();
  void stop();
  std::function<HostBatch(int64_t)> make_;
  int64_t next_;  // to be begun
  size_t depth_;
  bool stopping_ = false, failed_ = false;
  std::deque<Slot> slots_;  // the next to be taken first
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::thread> threads_;
};

}  // namespace quell
