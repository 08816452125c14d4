// One thread that fills host batches ahead of the step. It calls no ATen operator, sleeps rather than spins, and runs
// at lower priority. The position of training is what was taken, not what was produced: nothing of the prefetcher is
// ever saved.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "data/source.h"

namespace quell {

class Prefetch {
 public:
  // make(i) is the i-th batch counted from 0; called on the thread in order from `first`, at most `depth` ahead of
  // take().
  Prefetch(std::function<HostBatch(int64_t)> make, int64_t first, int depth = 2);
  ~Prefetch();  // stops and joins
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  // The next batch; rethrows what make() threw for it.
  HostBatch take();

 private:
  void run();
  std::function<HostBatch(int64_t)> make_;
  int64_t next_;
  size_t depth_;
  bool stopping_ = false;
  std::deque<HostBatch> ready_;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace quell
