#include "data/prefetch.h"

#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/machine.h"

namespace quell {

Prefetch::Prefetch(std::function<HostBatch(int64_t)> make, int64_t first, int depth, int threads)
    : make_(std::move(make)), next_(first), depth_(static_cast<size_t>(depth)) {
  require(depth > 0, "Prefetch: a depth of at least one batch");
  require(threads > 0 && threads <= depth, "Prefetch: at least one thread, and a batch for each");
  threads_.reserve(static_cast<size_t>(threads));
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  } catch (const std::system_error& error) {
    stop();
    throw MachineError(std::string("threads that prefetch cannot be started: ") + error.what());
  }
}

Prefetch::~Prefetch() { stop(); }

void Prefetch::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (auto& thread : threads_) thread.join();
}

HostBatch Prefetch::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !slots_.empty() && slots_.front().is_ready; });
  if (slots_.front().failure) std::rethrow_exception(slots_.front().failure);  // it stays in front
  HostBatch batch = std::move(slots_.front().batch);
  slots_.pop_front();
  changed_.notify_all();
  return batch;
}

// A slot is taken from the back when its batch is begun, so a batch before a failed one is being made already. A deque
// leaves the other slots in place when one is taken from its front or added to its back.
void Prefetch::run() {
  machine::lower_thread_priority();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || failed_ || slots_.size() < depth_; });
    if (stopping_ || failed_) return;
    Slot& slot = slots_.emplace_back();
    const int64_t number = next_++;
    lock.unlock();
    HostBatch batch;
    std::exception_ptr failure;
    try {
      batch = make_(number);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    slot.batch = std::move(batch);
    slot.failure = failure;
    slot.is_ready = true;
    failed_ |= failure != nullptr;
    changed_.notify_all();
  }
}

}  // namespace quell
