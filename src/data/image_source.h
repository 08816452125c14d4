// Batches from image sets, as data/source.h has them from tokens: a pure function from a range of samples to a batch. Sample p of
// training is image shuffled(p) of the set (data/order.h), changed by what augmentation draws for p. Values are
// (pixel / 255 - mean) / std; a target is the image's class.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "data/image_config.h"
#include "data/image_set.h"
#include "data/source.h"

namespace quell {

// What has been read of a set whose broken files are skipped; counted anew where a batch is made again.
class BrokenImages {
 public:
  int64_t count() const;
  std::string first() const;  // what was wrong with the first that was met, or ""
  void add(const std::string& what);

 private:
  mutable std::mutex mutex_;
  std::atomic<int64_t> count_{0};
  std::string first_;
};

class ImageSource {
 public:
  // Images are `size` x `size` with 1 or 3 channels. Throws UsageError where mean or std do not fit the channels.
  ImageSource(ImageSet set, int64_t size, int64_t channels, uint64_t seed, const ImageData& config);
  // Samples [first, first + count) in training order. Pure but for the count of broken images, and thread-safe. A broken image
  // throws DataError that names the file, or with on_broken: skip is an ignored sample: target -1, all values 0.
  HostBatch read(int64_t first, int64_t count) const;
  int64_t epoch_samples() const { return set_.size(); }
  const ImageSet& set() const { return set_; }
  const BrokenImages& broken() const { return *broken_; }

 private:
  ImageSet set_;
  int64_t size_, channels_;
  uint64_t seed_;
  ImageData config_;
  std::shared_ptr<BrokenImages> broken_;
};

// A fixed set for evaluation: `count` images evenly spaced over the set, or all of them where count is 0 or above their
// number. Never augmented.
class FixedImages {
 public:
  FixedImages(ImageSet set, int64_t size, int64_t channels, int64_t count, const ImageData& config);
  int64_t samples() const { return count_; }
  HostBatch read(int64_t first, int64_t count) const;
  const ImageSet& set() const { return set_; }
  const BrokenImages& broken() const { return *broken_; }

 private:
  ImageSet set_;
  int64_t size_, channels_, count_;
  ImageData config_;
  std::shared_ptr<BrokenImages> broken_;
};

}  // namespace quell
