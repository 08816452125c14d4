// The prefetch thread: order, depth, errors and its end.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

#include "base/error.h"
#include "data/prefetch.h"

// clang-format off
#include <catch2/catch.hpp>  // last: c10/util/Logging.h has a CHECK of its own
// clang-format on

using namespace quell;

namespace {

// Counts what was made, and lets a test wait for a count.
class Maker {
 public:
  HostBatch make(int64_t i) {
    HostBatch batch;
    batch.positions = {i};
    const std::lock_guard lock(mutex_);
    ++made_;
    changed_.notify_all();
    return batch;
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return made_ >= count; });
  }
  int made() {
    const std::lock_guard lock(mutex_);
    return made_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int made_ = 0;
};

}  // namespace

TEST_CASE("batches come in order from the first one asked for", "[unit]") {
  Maker maker;
  Prefetch prefetch([&](int64_t i) { return maker.make(i); }, 1000, 3);
  for (int64_t i = 1000; i < 1200; ++i) REQUIRE(prefetch.take().positions == std::vector<int64_t>{i});
}

TEST_CASE("no more than the depth is made ahead", "[unit]") {
  Maker maker;
  std::atomic<int> taken = 0, furthest = 0;
  {
    Prefetch prefetch(
        [&](int64_t i) {
          furthest = std::max<int>(furthest, static_cast<int>(i) + 1 - taken);
          return maker.make(i);
        },
        0, 2);
    maker.wait_for(2);
    for (int i = 0; i < 100; ++i) {
      ++taken;  // before take(), which may wake the thread before it returns
      prefetch.take();
    }
  }
  CHECK(furthest <= 2);
  CHECK(maker.made() <= 102);
}

TEST_CASE("what making a batch threw arrives in its place and stays", "[unit]") {
  Prefetch prefetch(
      [&](int64_t i) -> HostBatch {
        if (i == 2) throw DataError("shard 2 is gone");
        HostBatch batch;
        batch.positions = {i};
        return batch;
      },
      0, 4);
  CHECK(prefetch.take().positions[0] == 0);
  CHECK(prefetch.take().positions[0] == 1);
  for (int again = 0; again < 2; ++again) {
    CHECK_THROWS_MATCHES(prefetch.take(), DataError, Catch::Message("shard 2 is gone"));
  }
}

TEST_CASE("the end does not wait for batches that nobody takes", "[unit]") {
  for (int depth : {1, 2, 5}) {
    Maker maker;
    {
      Prefetch prefetch([&](int64_t i) { return maker.make(i); }, 0, depth);
      maker.wait_for(depth);
    }
    CHECK(maker.made() == depth);
  }
}

TEST_CASE("the thread runs at lower priority and not on the caller's thread", "[unit]") {
  std::atomic<int> priority = -1, thread = 0;
  Prefetch prefetch(
      [&](int64_t) {
        thread = gettid();
        priority = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
        return HostBatch{};
      },
      0, 1);
  prefetch.take();
  CHECK(priority == 10);
  CHECK(thread != gettid());
}

TEST_CASE("a waiting thread uses no processor time", "[unit]") {
  Maker maker;
  Prefetch prefetch([&](int64_t i) { return maker.make(i); }, 0, 1);
  maker.wait_for(1);
  // A spinning thread would use as much as this one does here; the clock of the process counts both.
  const auto used = [](clockid_t clock) {
    timespec now = {};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const double process = used(CLOCK_PROCESS_CPUTIME_ID), mine = used(CLOCK_THREAD_CPUTIME_ID);
  while (used(CLOCK_THREAD_CPUTIME_ID) - mine < 0.1) {
  }
  const double others = used(CLOCK_PROCESS_CPUTIME_ID) - process - (used(CLOCK_THREAD_CPUTIME_ID) - mine);
  CHECK(others < 0.02);
}

TEST_CASE("several threads make batches at once, which come in order", "[unit]") {
  // Batch i is done only when i + 1 has begun, so none comes at all unless two are made at once, and each ends after a later one
  // began.
  std::mutex mutex;
  std::condition_variable changed;
  int64_t begun = -1;
  const auto make = [&](int64_t i) {
    std::unique_lock lock(mutex);
    begun = std::max(begun, i);
    changed.notify_all();
    changed.wait(lock, [&] { return begun > i || begun == 99; });
    HostBatch batch;
    batch.positions = {i};
    return batch;
  };
  std::vector<int64_t> seen;
  {
    Prefetch prefetch([&](int64_t i) { return i < 100 ? make(i) : HostBatch{}; }, 0, 3, 2);
    for (int64_t i = 0; i < 100; ++i) seen.push_back(prefetch.take().positions.at(0));
  }
  std::vector<int64_t> expected(100);
  for (size_t i = 0; i < 100; ++i) expected[i] = static_cast<int64_t>(i);
  CHECK(seen == expected);
}

TEST_CASE("several threads do not make more than the depth ahead", "[unit]") {
  Maker maker;
  std::atomic<int> taken = 0, furthest = 0;
  {
    Prefetch prefetch(
        [&](int64_t i) {
          int seen = furthest;
          const int ahead = static_cast<int>(i) + 1 - taken;
          while (seen < ahead && !furthest.compare_exchange_weak(seen, ahead)) {
          }
          return maker.make(i);
        },
        0, 4, 3);
    maker.wait_for(4);
    for (int i = 0; i < 200; ++i) {
      ++taken;
      prefetch.take();
    }
  }
  CHECK(furthest <= 4);
  CHECK(maker.made() <= 204);
}

TEST_CASE("of several errors the first in order arrives, after all batches before it", "[unit]") {
  // Batch 3 fails first in time; 2 fails after it, and what comes before is made last.
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<bool> done(4);
  const auto make = [&](int64_t i) -> HostBatch {
    if (i > 3) return {};  // begun where 0 and 1 were taken before the failures have arrived
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return i == 3 || done[static_cast<size_t>(i) + 1]; });
    done[static_cast<size_t>(i)] = true;
    changed.notify_all();
    if (i >= 2) throw DataError("batch " + std::to_string(i));
    HostBatch batch;
    batch.positions = {i};
    return batch;
  };
  Prefetch prefetch(make, 0, 4, 4);
  CHECK(prefetch.take().positions.at(0) == 0);
  CHECK(prefetch.take().positions.at(0) == 1);
  for (int again = 0; again < 2; ++again) {
    CHECK_THROWS_MATCHES(prefetch.take(), DataError, Catch::Message("batch 2"));
  }
}

TEST_CASE("a depth of nothing, no thread and a thread without a batch are bugs", "[unit]") {
  const auto make = [](int64_t) { return HostBatch{}; };
  CHECK_THROWS_AS(Prefetch(make, 0, 0), Bug);
  CHECK_THROWS_AS(Prefetch(make, 0, 2, 0), Bug);
  CHECK_THROWS_AS(Prefetch(make, 0, 2, 3), Bug);
}
