// What a run file says of images: `data: {kind: images, ...}`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/describe.h"
#include "data/augment.h"

namespace quell {

enum class OnBroken { error, skip };
template <>
inline constexpr auto choices<OnBroken> =
    std::array{Choice{OnBroken::error, "error", "the run ends and names the file"},
               Choice{OnBroken::skip, "skip", "the sample is ignored (it counts as no target) and counted"}};

struct ImageData {
  static constexpr const char* kind_name = "images";
  std::string train;
  int64_t batch = 128;
  std::vector<double> mean{0.5};
  std::vector<double> std{0.5};
  double crop = 1;
  AugmentConfig augment;
  OnBroken on_broken = OnBroken::error;
  int64_t decode_threads = 1;
};
template <class V>
void describe(V& v, ImageData& c) {
  v.field("train", c.train,
          help("A folder with a folder of PNG and JPEG files for each class, or an IDX pair: DIR/train for "
               "DIR/train-images-idx3-ubyte(.gz) and its labels."));
  v.field("batch", c.batch, help("Samples of one optimiser step over the whole world.").unit("samples").at_least(1).at_most(1e9));
  v.field("mean", c.mean, help("Subtracted from values in [0, 1]: one number, or one a channel.").at_least(-1e6).at_most(1e6));
  v.field("std", c.std, help("What values are divided by after that: one number, or one a channel.").above(0).at_most(1e6));
  v.field("crop", c.crop,
          help("Side of the square that is cut from the middle, as a share of the shorter side; not where "
               "augment.random_resized_crop cuts.")
              .above(0)
              .at_most(1));
  v.field("augment", c.augment, help("Random changes of training samples; evaluation has none."));
  v.field("on_broken", c.on_broken, help("What happens at a file that cannot be decoded."));
  v.field("decode_threads", c.decode_threads, help("Threads that decode batches ahead of the step.").at_least(1).at_most(256));
}
void check(Problems& problems, const ImageData& data);

}  // namespace quell
