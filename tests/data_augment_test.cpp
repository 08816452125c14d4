// What is cut from an image, and how it is resized: laws of the draws, and of the filter.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "base/error.h"
#include "config/load.h"
#include "data/augment.h"
#include "data/image_config.h"
#include "image_support.h"

using namespace quell;
using namespace quell::testing;
using Floats = std::vector<float>;

namespace {

Pixels picture(int64_t width, int64_t height, int64_t channels) {
  const std::string bytes = varied(static_cast<size_t>(width * height * channels));
  return {width, height, channels, {bytes.begin(), bytes.end()}};
}

View whole(const Pixels& image) { return {{0, 0, image.width, image.height}, 0, 0, false}; }

double mean(const Floats& values) {
  double sum = 0;
  for (const float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("an image of the model's size is not changed", "[unit]") {
  const Pixels grey = picture(5, 5, 1);
  CHECK(render(grey, whole(grey), 5, 1) == Floats(grey.values.begin(), grey.values.end()));
}

TEST_CASE("the middle square is cut from a longer image, and a smaller one where a share is asked for", "[unit]") {
  const auto cut = [](int64_t width, int64_t height, double share) {
    const Rectangle r = plain_view(width, height, share).crop;
    return std::vector<int64_t>{r.left, r.top, r.width, r.height};
  };
  CHECK(cut(10, 4, 1) == std::vector<int64_t>{3, 0, 4, 4});
  CHECK(cut(4, 11, 1) == std::vector<int64_t>{0, 3, 4, 4});
  CHECK(cut(256, 256, 0.875) == std::vector<int64_t>{16, 16, 224, 224});
  CHECK(cut(3, 1, 0.01) == std::vector<int64_t>{1, 0, 1, 1});
  const Pixels image = picture(10, 4, 1);
  const Floats values = render(image, plain_view(10, 4, 1), 4, 1);
  for (size_t y = 0; y < 4; ++y) {
    for (size_t x = 0; x < 4; ++x) CHECK(values[4 * y + x] == image.values[10 * y + x + 3]);
  }
}

// A triangle twice as wide as the two pixels that fall on one: weights 1, 3, 3, 1 of 8, of which the border leaves 3, 3, 1 of 7.
TEST_CASE("shrinking to a half is the known filter", "[unit]") {
  const Pixels row{8, 1, 1, {8, 16, 32, 64, 128, 0, 40, 80}};
  const Floats values = render(Pixels{8, 8, 1,
                                      [&] {
                                        std::vector<uint8_t> all;
                                        for (int y = 0; y < 8; ++y) all.insert(all.end(), row.values.begin(), row.values.end());
                                        return all;
                                      }()},
                               {{0, 0, 8, 8}, 0, 0, false}, 4, 1);
  const double expected[] = {(3 * 8 + 3 * 16 + 32) / 7.0, (16 + 3 * 32 + 3 * 64 + 128) / 8.0, (64 + 3 * 128 + 0 + 40) / 8.0,
                             (0 + 3 * 40 + 3 * 80) / 7.0};
  // Eight products and sums of numbers below 256, each rounded to 24 bits.
  for (size_t i = 0; i < 16; ++i) CHECK(std::abs(values[i] - expected[i % 4]) <= 8 * 0x1p-17);
}

TEST_CASE("enlarging interpolates linearly between the middles of pixels", "[unit]") {
  const Pixels image{2, 2, 1, {0, 100, 0, 100}};
  const Floats values = render(image, whole(image), 4, 1);
  for (size_t y = 0; y < 4; ++y) CHECK(Floats(values.begin() + 4 * y, values.begin() + 4 * y + 4) == Floats{0, 25, 75, 100});
}

TEST_CASE("a flat image stays flat at every size, and no value leaves the image's range", "[unit]") {
  for (int64_t from : {1, 2, 3, 7, 28, 97}) {
    for (int64_t to : {1, 2, 5, 28, 64}) {
      CAPTURE(from, to);
      const Pixels flat{from, from, 1, std::vector<uint8_t>(static_cast<size_t>(from * from), 200)};
      // Weights of up to 2 * 97 + 1 taps, rounded to float, in two directions.
      for (const float value : render(flat, whole(flat), to, 1)) REQUIRE(std::abs(value - 200) <= 200 * 2 * 195 * 0x1p-24);
    }
  }
}

TEST_CASE("resizing commutes with mirroring and transposing", "[unit]") {
  const Pixels image = picture(13, 13, 1);
  Pixels mirrored = image, transposed = image;
  for (size_t y = 0; y < 13; ++y) {
    for (size_t x = 0; x < 13; ++x) {
      mirrored.values[13 * y + x] = image.values[13 * y + 12 - x];
      transposed.values[13 * y + x] = image.values[13 * x + y];
    }
  }
  const Floats plain = render(image, whole(image), 5, 1), from_mirrored = render(mirrored, whole(mirrored), 5, 1),
               from_transposed = render(transposed, whole(transposed), 5, 1);
  // Sums of the same six or seven products in another order, in two directions: at most 16 roundings of numbers below 256.
  for (size_t y = 0; y < 5; ++y) {
    for (size_t x = 0; x < 5; ++x) {
      CHECK(std::abs(plain[5 * y + x] - from_mirrored[5 * y + 4 - x]) <= 16 * 0x1p-17);
      CHECK(std::abs(plain[5 * y + x] - from_transposed[5 * x + y]) <= 16 * 0x1p-17);
    }
  }
}

TEST_CASE("nothing outside the crop is used", "[unit]") {
  Pixels image = picture(20, 20, 3);
  const View view{{4, 6, 11, 9}, 0, 0, false};
  const Floats before = render(image, view, 4, 3);
  for (int64_t y = 0; y < 20; ++y) {
    for (int64_t x = 0; x < 20; ++x) {
      const bool inside = x >= 4 && x < 15 && y >= 6 && y < 15;
      for (int64_t c = 0; c < 3 && !inside; ++c) image.values[static_cast<size_t>((20 * y + x) * 3 + c)] ^= 0xff;
    }
  }
  CHECK(render(image, view, 4, 3) == before);
  CHECK_THROWS_AS(render(image, {{10, 0, 11, 5}, 0, 0, false}, 4, 3), Bug);
}

TEST_CASE("grey is copied into each channel, and colour becomes grey by luma", "[unit]") {
  const Pixels grey = picture(3, 3, 1), red{1, 1, 3, {255, 0, 0}}, green{1, 1, 3, {0, 255, 0}}, blue{1, 1, 3, {0, 0, 255}};
  const Floats once = render(grey, whole(grey), 3, 1), thrice = render(grey, whole(grey), 3, 3);
  for (size_t i = 0; i < 27; ++i) CHECK(thrice[i] == once[i % 9]);
  CHECK(render(red, whole(red), 1, 1)[0] == 255 * 0.299f);
  CHECK(render(green, whole(green), 1, 1)[0] == 255 * 0.587f);
  CHECK(render(blue, whole(blue), 1, 1)[0] == 255 * 0.114f);
  CHECK(render(Pixels{1, 1, 3, {1, 2, 3}}, {{0, 0, 1, 1}, 0, 0, false}, 1, 3) == Floats{1, 2, 3});
}

TEST_CASE("flipping twice is nothing, and flipping is mirroring", "[unit]") {
  const Pixels image = picture(6, 6, 3);
  View flipped = whole(image);
  flipped.flip = true;
  const Floats plain = render(image, whole(image), 6, 3), once = render(image, flipped, 6, 3);
  CHECK(once != plain);
  Pixels again{6, 6, 3, std::vector<uint8_t>(108)};
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < 36; ++i) again.values[3 * i + c] = static_cast<uint8_t>(once[36 * c + i]);
  }
  CHECK(render(again, flipped, 6, 3) == plain);
}

TEST_CASE("moving takes in black, up to an image that is all black", "[unit]") {
  const Pixels image{2, 2, 1, {1, 2, 3, 4}};
  const auto moved = [&](int64_t right, int64_t down, bool flip = false) {
    return render(image, {{0, 0, 2, 2}, right, down, flip}, 2, 1);
  };
  CHECK(moved(1, 0) == Floats{0, 1, 0, 3});
  CHECK(moved(-1, 0) == Floats{2, 0, 4, 0});
  CHECK(moved(0, 1) == Floats{0, 0, 1, 2});
  CHECK(moved(1, -1) == Floats{0, 3, 0, 0});
  CHECK(moved(1, 0, true) == Floats{0, 2, 0, 4});  // flipped, then moved
  CHECK(moved(2, 0) == Floats{0, 0, 0, 0});
  CHECK(moved(-7, 9) == Floats{0, 0, 0, 0});
}

TEST_CASE("without augmentation every draw is the plain view", "[unit]") {
  for (int64_t position = 0; position < 100; ++position) {
    const View drawn = drawn_view({}, 30, 20, 0.9, 1, position), plain = plain_view(30, 20, 0.9);
    CHECK((drawn.crop.left == plain.crop.left && drawn.crop.top == plain.crop.top && drawn.crop.width == plain.crop.width));
    CHECK((!drawn.flip && drawn.right == 0 && drawn.down == 0));
  }
}

TEST_CASE("flips and shifts are uniform, and a sample's say nothing of the next one's", "[unit]") {
  const AugmentConfig config{.flip = true, .crop_padding = 2};
  constexpr int draws = 10000;
  std::vector<int> pairs(4), cells(25);  // the flips of a sample and the next, and where a sample is moved
  for (int64_t i = 0; i < draws; ++i) {
    const View view = drawn_view(config, 8, 8, 1, 3, i);
    REQUIRE((std::abs(view.right) <= 2 && std::abs(view.down) <= 2));
    ++pairs[(view.flip ? 2 : 0) + (drawn_view(config, 8, 8, 1, 3, i + 1).flip ? 1 : 0)];
    ++cells[static_cast<size_t>(5 * (view.right + 2) + view.down + 2)];
  }
  // Chi-square with d degrees has mean d and variance 2 d; the seed is fixed, so this is not a matter of luck from run to run.
  const auto chi_square = [&](const std::vector<int>& counts) {
    const double expected = static_cast<double>(draws) / static_cast<double>(counts.size());
    double sum = 0;
    for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
    return sum;
  };
  CHECK(chi_square(pairs) < 3 + 5 * std::sqrt(6.0));
  CHECK(chi_square(cells) < 24 + 5 * std::sqrt(48.0));
}

TEST_CASE("a random crop lies in the image, has the area and aspect allowed, and its middle is everywhere", "[unit]") {
  const AugmentConfig config{.random_resized_crop = 0.25};
  constexpr int64_t width = 400, height = 300, draws = 10000;
  double left = 0, right = 0, top = 0, bottom = 0, area = 0, log_aspect = 0;
  for (int64_t i = 0; i < draws; ++i) {
    const Rectangle r = drawn_view(config, width, height, 1, 5, i).crop;
    REQUIRE((r.left >= 0 && r.top >= 0 && r.left + r.width <= width && r.top + r.height <= height));
    // A side is rounded by half a pixel.
    const auto w = static_cast<double>(r.width), h = static_cast<double>(r.height);
    REQUIRE((w + 0.5) * (h + 0.5) >= 0.25 * width * height);
    REQUIRE((w + 0.5) / (h - 0.5) >= 0.75);
    REQUIRE((w - 0.5) / (h + 0.5) <= 4.0 / 3);
    left += static_cast<double>(r.left);
    right += static_cast<double>(width - r.left - r.width);
    top += static_cast<double>(r.top);
    bottom += static_cast<double>(height - r.top - r.height);
    area += w * h / (width * height);
    log_aspect += std::log(w / h);
  }
  // What is left over lies evenly on both sides. A margin is at most the image, so its mean has a deviation below its side / 100.
  CHECK(std::abs(left - right) / draws < 5 * width / 100.0);
  CHECK(std::abs(top - bottom) / draws < 5 * height / 100.0);
  // With aspect a only areas up to 3 a / 4 fit an image of 4:3, so over log a in [-L, L], L = log(4 / 3), the mean area is
  // (9/16 sinh(2 L) - L / 8) / 2 / (3/2 sinh(L) - L / 2); its deviation is below half the range, and a hundredth of that for the
  // mean.
  const double l = std::log(4.0 / 3);
  const double expected = (9.0 / 16 * std::sinh(2 * l) - l / 8) / 2 / (1.5 * std::sinh(l) - l / 2);
  CHECK(std::abs(area / draws - expected) < 5 * 0.375 / 100);
  CHECK(log_aspect > 0);  // on a wide image, tall crops are the ones that do not fit
}

TEST_CASE("of a square image a crop and its transpose are as likely", "[unit]") {
  const AugmentConfig config{.random_resized_crop = 0.1};
  int wide = 0, tall = 0;
  for (int64_t i = 0; i < 10000; ++i) {
    const Rectangle r = drawn_view(config, 1000, 1000, 1, 5, i).crop;
    wide += r.width > r.height;
    tall += r.height > r.width;
  }
  CHECK(std::abs(wide - tall) < 5 * std::sqrt(static_cast<double>(wide + tall)));
}

TEST_CASE("the mean of many random crops of a ramp is that of the ramp", "[unit]") {
  const AugmentConfig config{.random_resized_crop = 0.08};
  Pixels across{41, 41, 1, {}}, down{41, 41, 1, {}};
  for (int y = 0; y < 41; ++y) {
    for (int x = 0; x < 41; ++x) {
      across.values.push_back(static_cast<uint8_t>(5 * x));
      down.values.push_back(static_cast<uint8_t>(5 * y));
    }
  }
  double sum_across = 0, sum_down = 0;
  for (int64_t i = 0; i < 2500; ++i) {
    const View view = drawn_view(config, 41, 41, 1, 1, i);
    sum_across += mean(render(across, view, 4, 1));
    sum_down += mean(render(down, view, 4, 1));
  }
  // Values from 0 to 200 deviate by 100 at most, their mean of 2500 by a fiftieth of that.
  CHECK(std::abs(sum_across / 2500 - 100) < 5 * 100 / 50.0);
  CHECK(std::abs(sum_down / 2500 - 100) < 5 * 100 / 50.0);
}

TEST_CASE("an image that is too long for any crop gives its middle at the nearest aspect", "[unit]") {
  const AugmentConfig config{.random_resized_crop = 0.9};
  for (int64_t i = 0; i < 20; ++i) {
    const Rectangle wide = drawn_view(config, 3000, 30, 1, 1, i).crop, tall = drawn_view(config, 30, 3000, 1, 1, i).crop;
    CHECK((wide.left == 1480 && wide.top == 0 && wide.width == 40 && wide.height == 30));
    CHECK((tall.left == 0 && tall.top == 1480 && tall.width == 30 && tall.height == 40));
    const Rectangle dot = drawn_view(config, 1, 1, 1, 1, i).crop;
    CHECK((dot.width == 1 && dot.height == 1));
  }
}

TEST_CASE("the keys of images load with their ranges", "[unit]") {
  const auto load = [](const std::string& text) { return config::load<ImageData>(config::Source::from_text(text, "run.yaml")); };
  const ImageData data =
      load("train: x\nmean: [0.1, 0.2, 0.3]\nstd: [2]\naugment: {flip: true, random_resized_crop: 0.5}\non_broken: skip\n");
  CHECK((data.mean.size() == 3 && data.std == std::vector<double>{2} && data.augment.flip && data.on_broken == OnBroken::skip));
  CHECK(data.augment.random_resized_crop == 0.5);
  for (const char* wrong : {"mean: [1, 2]", "std: [0]", "std: []", "crop: 0", "crop: 1.1", "augment: {crop_padding: -1}",
                            "augment: {random_resized_crop: 0}", "batch: 0", "decode_threads: 0", "on_broken: ignore"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(load(wrong), UsageError);
  }
}
