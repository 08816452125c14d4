#include "data/image_source.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/order.h"

namespace quell {
namespace {

double of_channel(const std::vector<double>& values, int64_t channel) {
  return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
}

void check_usable(int64_t size, int64_t channels, const ImageData& config) {
  require(size > 0, "images: a size of at least one pixel");
  if (channels != 1 && channels != 3)
    throw UsageError(cat("images: ", channels, " channels; 1 (grey) or 3 (colour) can be read"));
  for (const auto& [key, values] : {std::pair{"mean", &config.mean}, {"std", &config.std}}) {
    if (values->size() == 1 || static_cast<int64_t>(values->size()) == channels) continue;
    throw UsageError(cat("data.", key, ": ", values->size(), " numbers, and the model takes ", channels,
                         channels == 1 ? " channel" : " channels", ": write one number, or one a channel"));
  }
}

// Makes batches of one shape. image_of(row) is an image of the set, view_of(row, pixels) what is taken of it, position_of(row)
// the sample's number.
template <class Index, class Viewing>
HostBatch fill(const ImageSet& set, int64_t first, int64_t count, int64_t size, int64_t channels, const ImageData& config,
               BrokenImages& broken, const Index& image_of, const Viewing& view_of) {
  HostBatch batch;
  batch.samples = count;
  batch.channels = channels;
  batch.height = batch.width = size;
  const int64_t plane = size * size;
  batch.images.assign(static_cast<size_t>(count * channels * plane), 0.0f);
  for (int64_t row = 0; row < count; ++row) {
    const int64_t position = first + row, image = image_of(position);
    batch.positions.push_back(position);
    batch.targets.push_back(set.label(image));
    Pixels pixels;
    try {
      pixels = set.read(image);
    } catch (const DataError& error) {
      if (config.on_broken == OnBroken::error) {
        throw DataError(cat(error.what(), "; quell data verify ", set.path(), " lists all that are broken, and data.on_broken: skip leaves them out"));
      }
      broken.add(error.what());
      batch.targets.back() = -1;
      continue;
    }
    const std::vector<float> values = render(pixels, view_of(position, pixels), size, channels);
    float* out = batch.images.data() + row * channels * plane;
    for (int64_t c = 0; c < channels; ++c) {
      const double mean = of_channel(config.mean, c), deviation = of_channel(config.std, c);
      const auto factor = static_cast<float>(1 / (255 * deviation)), shift = static_cast<float>(mean / deviation);
      for (int64_t i = c * plane; i < (c + 1) * plane; ++i) out[i] = values[static_cast<size_t>(i)] * factor - shift;
    }
  }
  return batch;
}

}  // namespace

void check(Problems& problems, const ImageData& data) {
  for (const auto& [key, values] : {std::pair{"mean", &data.mean}, {"std", &data.std}}) {
    if (values->size() == 1 || values->size() == 3) continue;
    problems.add(key, cat(values->size(), " numbers"), "one number, or one for each of 1 or 3 channels");
  }
}

int64_t BrokenImages::count() const { return count_; }

std::string BrokenImages::first() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

void BrokenImages::add(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (count_++ == 0) first_ = what;
}

ImageSource::ImageSource(ImageSet set, int64_t size, int64_t channels, uint64_t seed, const ImageData& config)
    : set_(std::move(set)),
      size_(size),
      channels_(channels),
      seed_(seed),
      config_(config),
      broken_(std::make_shared<BrokenImages>()) {
  check_usable(size, channels, config);
}

HostBatch ImageSource::read(int64_t first, int64_t count) const {
  return fill(
      set_, first, count, size_, channels_, config_, *broken_,
      [&](int64_t position) { return shuffled(position, set_.size(), seed_); },
      [&](int64_t position, const Pixels& p) {
        return drawn_view(config_.augment, p.width, p.height, config_.crop, seed_, position);
      });
}

FixedImages::FixedImages(ImageSet set, int64_t size, int64_t channels, int64_t count, const ImageData& config)
    : set_(std::move(set)),
      size_(size),
      channels_(channels),
      count_(count == 0 ? set_.size() : std::min(count, set_.size())),
      config_(config),
      broken_(std::make_shared<BrokenImages>()) {
  check_usable(size, channels, config);
}

HostBatch FixedImages::read(int64_t first, int64_t count) const {
  require(first >= 0 && count >= 0 && first + count <= count_, "FixedImages: samples outside the set");
  return fill(
      set_, first, count, size_, channels_, config_, *broken_,
      [&](int64_t sample) { return static_cast<int64_t>(static_cast<__int128>(sample) * set_.size() / count_); },
      [&](int64_t, const Pixels& p) { return plain_view(p.width, p.height, config_.crop); });
}

}  // namespace quell
