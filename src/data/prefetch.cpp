#include "data/prefetch.h"

#include <utility>

#include "base/error.h"
#include "base/machine.h"

namespace quell {

Prefetch::Prefetch(std::function<HostBatch(int64_t)> make, int64_t first, int depth)
    : make_(std::move(make)), next_(first), depth_(static_cast<size_t>(depth)) {
  require(depth > 0, "Prefetch: a depth of at least one batch");
  thread_ = std::thread([this] { run(); });
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

HostBatch Prefetch::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !ready_.empty() || failure_; });
  if (ready_.empty()) std::rethrow_exception(failure_);
  HostBatch batch = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

void Prefetch::run() {
  machine::lower_thread_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || ready_.size() < depth_; });
    if (stopping_) return;
    lock.unlock();
    HostBatch batch;
    std::exception_ptr failure;
    try {
      batch = make_(next_);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure) {
      failure_ = failure;
    } else {
      ready_.push_back(std::move(batch));
      ++next_;
    }
    changed_.notify_all();
    if (failure) return;
  }
}

}  // namespace quell
