// The audit of what training sees: over three epochs every sample once in each, in one order for any number of ranks, micro-batches and
// threads, and from any position at which a run is stopped and gone on with.
#include <algorithm>
#include <numeric>

#include "cases.h"
#include "data/prefetch.h"
#include "data/sources.h"
#include "image_support.h"

// clang-format off
#include <catch2/catch.hpp>  // last: c10/util/Logging.h has a CHECK of its own
// clang-format on

namespace quell {
namespace {

using testing::Cases;
using testing::TemporaryFolder;

constexpr int64_t context = 7, epochs = 3;
using Ids = std::vector<int64_t>;

// Token i is i, so that a window is known by its first one.
Source counting_tokens(const TemporaryFolder& home, uint64_t seed) {
  std::vector<uint16_t> ids(700);
  std::iota(ids.begin(), ids.end(), uint16_t{0});
  testing::write_ids(home / "count.bin", ids);
  return TokenSource(testing::open_set(home / "count.bin", TokenType::uint16), context, seed, true);
}

// Every value of image i is i.
Source counting_images(const TemporaryFolder& home, uint64_t seed) {
  constexpr uint32_t side = 4, count = 101;
  std::string labels(count, '\1'), values;
  for (uint32_t i = 0; i < count; ++i) values += std::string(side * side, static_cast<char>(i));
  testing::write_idx_pair(home / "count", side, side, labels, values);
  const ImageData data{.mean = {0}, .std = {1}, .augment = {.flip = true, .crop_padding = 0, .random_resized_crop = {}}};
  return ImageSource(testing::open_images(home / "count"), side, 1, seed, data);
}

// Which sample each of a batch is.
void append_ids(Ids& ids, const HostBatch& batch) {
  for (int64_t i = 0; i < batch.samples; ++i) {
    const bool is_text = batch.images.empty();
    const auto at = static_cast<size_t>(i) * (is_text ? context : batch.images.size() / static_cast<size_t>(batch.samples));
    ids.push_back(is_text ? batch.inputs[at] : std::lround(batch.images[at] * 255));
  }
}

struct Layout {
  int64_t ranks, parts, micro_batch;
  int threads;
  int64_t batch() const { return ranks * parts * micro_batch; }
};

// Steps [begin, end) as `ranks` runs of the program see them, put together as one step is: rank after rank, part after part.
Ids seen(const Source& source, const Layout& layout, int64_t begin, int64_t end) {
  std::vector<std::unique_ptr<Prefetch>> of_rank;
  for (int64_t rank = 0; rank < layout.ranks; ++rank) {
    const auto make = [&source, layout, rank](int64_t i) {
      const int64_t step = i / layout.parts, part = i % layout.parts;
      return read(source, step * layout.batch() + (rank * layout.parts + part) * layout.micro_batch, layout.micro_batch);
    };
    of_rank.push_back(std::make_unique<Prefetch>(make, begin * layout.parts, 2 + layout.threads - 1, layout.threads));
  }
  Ids ids;
  for (int64_t step = begin; step < end; ++step) {
    for (const auto& prefetch : of_rank) {
      for (int64_t part = 0; part < layout.parts; ++part) append_ids(ids, prefetch->take());
    }
  }
  return ids;
}

}  // namespace

TEST_CASE("over three epochs no sample is missing or repeated, wherever a run is stopped and gone on with", "[unit][R7]") {
  for (Cases cases("R7", 10, 60); cases.next();) {
    const int number = cases.number();
    const TemporaryFolder home;
    const auto seed = static_cast<uint64_t>(number / 10);
    const auto make = number % 2 == 0 ? counting_tokens : counting_images;
    const Layout layout{.ranks = 1 << number % 3, .parts = 1 + number % 4 / 2, .micro_batch = 1 + number % 5, .threads = 1 << number / 2 % 3};
    const Source source = make(home, seed);
    const int64_t epoch = epoch_samples(source), steps = (epochs * epoch + layout.batch() - 1) / layout.batch();
    const int64_t epoch_steps = epoch / layout.batch();
    const int64_t stops[] = {1, epoch_steps, epoch_steps + 1, steps / 2, steps - 1};
    const int64_t stop = std::clamp<int64_t>(stops[number / 2 % 5], 0, steps);
    CAPTURE(number, epoch, layout.batch(), stop);

    Ids ids = seen(source, layout, 0, stop);
    const Source again = make(home, seed);  // of a new process
    const Ids rest = seen(again, layout, stop, steps);
    ids.insert(ids.end(), rest.begin(), rest.end());
    const Ids one_by_one = seen(source, {.ranks = 1, .parts = 1, .micro_batch = 1, .threads = 1}, 0, steps * layout.batch());
    CHECK(ids == one_by_one);

    Ids before;
    for (int64_t i = 0; i < epochs; ++i) {
      const Ids in_order(ids.begin() + i * epoch, ids.begin() + (i + 1) * epoch);
      Ids sorted = in_order;
      std::sort(sorted.begin(), sorted.end());
      const int64_t stride = number % 2 == 0 ? context : 1;
      if (stride == 1) CHECK(sorted.front() == 0);
      CHECK(sorted.front() < context);  // the windows' offset, which each epoch draws
      for (int64_t k = 0; k < epoch; ++k) CHECK(sorted[static_cast<size_t>(k)] == sorted.front() + k * stride);
      CHECK(in_order != sorted);
      CHECK(in_order != before);
      before = in_order;
    }
  }
}

}  // namespace quell
