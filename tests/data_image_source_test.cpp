// Batches from image sets.
#include <ATen/ATen.h>

#include <set>

#include "base/error.h"
#include "data/image_source.h"
#include "data/order.h"
#include "data/prefetch.h"
#include "image_support.h"

// clang-format off
#include <catch2/catch.hpp>  // last: c10/util/Logging.h has a CHECK of its own
// clang-format on

using namespace quell;
using namespace quell::testing;
using Catch::Message;

namespace {

using Floats = std::vector<float>;
using Ids = std::vector<int64_t>;

ImageData unchanged() {  // values are those of the file, up to the division by 255
  ImageData config;
  config.mean = {0};
  config.std = {1};
  return config;
}

ImageData augmented() {
  ImageData config;
  config.augment.flip = true;
  config.augment.crop_padding = 2;
  config.augment.random_resized_crop = 0.3;
  return config;
}

// `count` images of 6 x 5 that all differ, with labels 0 to 6.
ImageSet varied_set(const TemporaryFolder& folder, int count) {
  std::string labels;
  for (int i = 0; i < count; ++i) labels += static_cast<char>(i % 7);
  write_idx_pair(folder / "train", 6, 5, labels);
  return open_images(folder / "train");
}

// `count` images of one pixel, whose value is their number.
ImageSet counting_set(const TemporaryFolder& folder, int count) {
  std::string values;
  for (int i = 0; i < count; ++i) values += static_cast<char>(i);
  write_idx_pair(folder / "count", 1, 1, std::string(static_cast<size_t>(count), '\0'), values);
  return open_images(folder / "count");
}

template <class Source>
Ids numbers(const Source& source, int64_t first, int64_t count) {  // of a counting_set
  Ids out;
  for (const float value : source.read(first, count).images) out.push_back(std::lround(value * 255));
  return out;
}

template <class Values>
void append(Values& to, const Values& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

TEST_CASE("a sample is the image's values, normalised, with its class as the only target", "[unit]") {
  TemporaryFolder folder;
  write_idx_pair(folder / "one", 2, 2, "\5", std::string("\0\x33\x66\xff", 4));  // 0, 51, 102, 255
  const ImageSet set = open_images(folder / "one");
  const HostBatch batch = ImageSource(set, 2, 1, 1, unchanged()).read(10, 1);
  CHECK((batch.samples == 1 && batch.context == 0 && batch.channels == 1 && batch.height == 2 && batch.width == 2));
  CHECK((batch.inputs.empty() && batch.documents.empty()));
  CHECK(batch.targets == Ids{5});
  CHECK(batch.positions == Ids{10});
  const Floats expected{0, 0.2f, 0.4f, 1};
  REQUIRE(batch.images.size() == 4);
  // Three roundings of numbers of at most 1, or of at most 2.
  for (size_t i = 0; i < 4; ++i) CHECK(std::abs(batch.images[i] - expected[i]) <= 3 * 0x1p-24);
  const Floats standard = ImageSource(set, 2, 1, 1, {}).read(0, 1).images;  // (x - 0.5) / 0.5
  for (size_t i = 0; i < 4; ++i) CHECK(std::abs(standard[i] - (2 * expected[i] - 1)) <= 3 * 0x1p-23);
}

TEST_CASE("mean and std may differ by channel", "[unit]") {
  TemporaryFolder folder;
  write_idx_pair(folder / "one", 1, 1, std::string(1, '\0'), "\xff");
  ImageData config;
  config.mean = {0.5, 0.25, 0};
  config.std = {0.5, 0.25, 2};
  CHECK(ImageSource(open_images(folder / "one"), 1, 3, 1, config).read(0, 1).images == Floats{1, 3, 0.5});
}

TEST_CASE("an epoch sees every image once, each epoch and seed in another order", "[unit]") {
  TemporaryFolder folder;
  const ImageSet set = counting_set(folder, 100);
  const ImageSource source(set, 1, 1, 1, unchanged()), other(set, 1, 1, 2, unchanged());
  CHECK(source.epoch_samples() == 100);
  Ids all;
  for (int64_t i = 0; i < 100; ++i) all.push_back(i);
  std::set<Ids> orders;
  for (int64_t epoch : {0, 1, 2, 1000000}) {
    Ids seen = numbers(source, epoch * 100, 100);
    orders.insert(seen);
    std::sort(seen.begin(), seen.end());
    CHECK(seen == all);
  }
  orders.insert(numbers(other, 0, 100));
  CHECK(orders.size() == 5);
  CHECK(orders.count(all) == 0);
}

TEST_CASE("a sample is the same however the batches are cut, across epochs too", "[unit]") {
  TemporaryFolder folder;
  const ImageSource source(varied_set(folder, 7), 4, 3, 9, augmented());
  const HostBatch whole = source.read(3, 24);
  for (int64_t part : {1, 2, 3, 8}) {
    HostBatch joined;
    for (int64_t first = 3; first < 27; first += part) {
      const HostBatch batch = source.read(first, part);
      append(joined.images, batch.images);
      append(joined.targets, batch.targets);
      append(joined.positions, batch.positions);
    }
    CHECK(joined.images == whole.images);
    CHECK(joined.targets == whole.targets);
    CHECK(joined.positions == whole.positions);
  }
}

TEST_CASE("the same image is augmented in another way in the next epoch, and the same way again from the same seed", "[unit]") {
  TemporaryFolder folder;
  const ImageSet set = varied_set(folder, 1);
  const ImageSource source(set, 4, 1, 9, augmented());
  std::set<Floats> seen;
  for (int64_t epoch = 0; epoch < 50; ++epoch) seen.insert(source.read(epoch, 1).images);
  CHECK(seen.size() > 25);  // 50 draws of 25 shifts and 2 flips alone repeat in fewer than half
  CHECK(ImageSource(set, 4, 1, 9, augmented()).read(7, 1).images == source.read(7, 1).images);
  CHECK(ImageSource(set, 4, 1, 10, augmented()).read(0, 50).images != source.read(0, 50).images);
  const ImageSource plain(set, 4, 1, 9, {});
  CHECK(plain.read(0, 1).images == plain.read(1, 1).images);
}

TEST_CASE("a fixed set is never augmented, and evenly spaced where it is a part", "[unit]") {
  TemporaryFolder folder;
  const ImageSet set = counting_set(folder, 100);
  CHECK(numbers(FixedImages(set, 1, 1, 4, unchanged()), 0, 4) == Ids{0, 25, 50, 75});
  CHECK(FixedImages(set, 1, 1, 0, {}).samples() == 100);
  CHECK(FixedImages(set, 1, 1, 1000, {}).samples() == 100);
  const FixedImages seven(set, 1, 1, 7, unchanged());
  CHECK(seven.samples() == 7);
  CHECK(numbers(seven, 2, 3) == Ids{28, 42, 57});
  CHECK(seven.read(2, 3).positions == Ids{2, 3, 4});
  CHECK_THROWS_AS(seven.read(5, 3), Bug);
  const ImageSet varied = varied_set(folder, 20);
  CHECK(FixedImages(varied, 4, 1, 0, augmented()).read(0, 20).images == FixedImages(varied, 4, 1, 0, {}).read(0, 20).images);
}

TEST_CASE("tensors take over a host batch of images without a copy", "[unit]") {
  TemporaryFolder folder;
  HostBatch host = ImageSource(varied_set(folder, 7), 4, 3, 9, augmented()).read(2, 5);
  const HostBatch copy = host;
  const float* memory = host.images.data();
  const Batch batch = to_tensors(std::move(host));
  CHECK(batch.images_BCHW.const_data_ptr<float>() == memory);
  CHECK(batch.images_BCHW.scalar_type() == at::kFloat);
  CHECK(batch.images_BCHW.sizes().vec() == Ids{5, 3, 4, 4});
  CHECK(Floats(memory, memory + batch.images_BCHW.numel()) == copy.images);
  CHECK(batch.targets_BT.sizes().vec() == Ids{5});
  CHECK(Ids(batch.targets_BT.const_data_ptr<int64_t>(), batch.targets_BT.const_data_ptr<int64_t>() + 5) == copy.targets);
  CHECK(Ids(batch.samples_B.const_data_ptr<int64_t>(), batch.samples_B.const_data_ptr<int64_t>() + 5) == Ids{2, 3, 4, 5, 6});
  CHECK_FALSE((batch.inputs_BT.defined() || batch.documents_BT.defined()));
}

TEST_CASE("settings that the images cannot honour are errors", "[unit]") {
  TemporaryFolder folder;
  const ImageSet set = counting_set(folder, 3);
  ImageData two_means, three_deviations;
  two_means.mean = {0.5, 0.5};
  three_deviations.std = {1, 1, 1};
  CHECK_THROWS_MATCHES(ImageSource(set, 1, 2, 1, {}), UsageError,
                       Message("images: 2 channels; 1 (grey) or 3 (colour) can be read"));
  CHECK_THROWS_MATCHES(ImageSource(set, 1, 3, 1, two_means), UsageError,
                       Message("data.mean: 2 numbers, and the model takes 3 channels: write one number, or one a channel"));
  CHECK_THROWS_MATCHES(FixedImages(set, 1, 1, 0, three_deviations), UsageError,
                       Message("data.std: 3 numbers, and the model takes 1 channel: write one number, or one a channel"));
  Problems problems;
  check(problems, two_means);
  check(problems, three_deviations);
  REQUIRE(problems.all().size() == 1);
  CHECK(problems.all()[0].key == "mean");
}

TEST_CASE("a broken image ends the run, or is an ignored sample that is counted", "[unit]") {
  TemporaryFolder folder;
  const auto path = [&](int64_t i) { return folder / "set/" + std::to_string(i) + "/x.png"; };
  for (int i = 0; i < 5; ++i) write_file(path(i), png_grey(2, 2, std::vector<uint8_t>(4, 255)));
  for (int i : {1, 3}) write_file(path(i), "GIF89a");
  const ImageSet set = open_images(folder / "set");
  const auto message = [&](int64_t i) { return path(i) + ": is neither a PNG nor a JPEG file: it seems to be a GIF"; };
  const auto is_broken = [](int64_t image) { return image == 1 || image == 3; };
  int64_t first = 0;
  while (!is_broken(shuffled(first, 5, 1))) ++first;
  const std::string first_message = message(shuffled(first, 5, 1));
  const std::string fix = "; quell data verify " + set.path() + " lists all that are broken, and data.on_broken: skip leaves them out";
  CHECK_THROWS_MATCHES(ImageSource(set, 2, 1, 1, unchanged()).read(0, 5), DataError, Message(first_message + fix));
  CHECK_THROWS_MATCHES(FixedImages(set, 2, 1, 0, unchanged()).read(3, 1), DataError, Message(message(3) + fix));

  ImageData skip = unchanged();
  skip.on_broken = OnBroken::skip;
  const ImageSource source(set, 2, 1, 1, skip);
  CHECK((source.broken().count() == 0 && source.broken().first().empty()));
  const HostBatch batch = source.read(0, 15);
  for (int64_t i = 0; i < 15; ++i) {  // in each of three epochs in its place, and never replaced by the next image
    const int64_t image = shuffled(i, 5, 1);
    CHECK(batch.targets[static_cast<size_t>(i)] == (is_broken(image) ? -1 : image));
    const auto begin = batch.images.begin() + 4 * i;
    CHECK(Floats(begin, begin + 4) == Floats(4, is_broken(image) ? 0.0f : 1.0f));
  }
  CHECK(source.broken().count() == 6);
  CHECK(source.broken().first() == first_message);
  const FixedImages fixed(set, 2, 1, 0, skip);
  CHECK(fixed.read(0, 5).targets == Ids{0, -1, 2, -1, 4});
  CHECK(fixed.broken().count() == 2);
}

TEST_CASE("several threads read one source, and make what one makes", "[unit]") {
  TemporaryFolder folder;
  const ImageSource source(varied_set(folder, 40), 4, 3, 9, augmented());
  Prefetch prefetch([&](int64_t i) { return source.read(8 * i, 8); }, 0, 6, 3);
  for (int64_t i = 0; i < 30; ++i) {
    const HostBatch made = prefetch.take(), expected = source.read(8 * i, 8);
    REQUIRE((made.positions == expected.positions && made.targets == expected.targets && made.images == expected.images));
  }
}
