// What is asked of any kind of data: here that skipped files are told.
#include <catch2/catch.hpp>

#include "data/sources.h"
#include "image_support.h"

namespace quell {

TEST_CASE("broken images that were skipped are told with their number and the first of them", "[unit]") {
  const testing::TemporaryFolder folder;
  const std::string good = testing::png_grey(4, 4, std::vector<uint8_t>(16, 7));
  testing::write_file(folder / "set/a/good.png", good);
  testing::write_file(folder / "set/b/bad.png", good.substr(0, 40));
  ImageData config;
  config.on_broken = OnBroken::skip;
  const Source source = ImageSource(testing::open_images(folder / "set"), 4, 1, 1, config);
  CHECK(broken_text(source).empty());
  read(source, 0, 2);  // an epoch
  CHECK_THAT(broken_text(source), Catch::Contains("set: 1 samples were left out as broken (data.on_broken: skip); the first: ") &&
                                      Catch::Contains("b/bad.png"));
  const FixedSet fixed = FixedImages(testing::open_images(folder / "set"), 4, 1, 0, config);
  read(fixed, 0, 2);
  CHECK_THAT(broken_text(fixed), Catch::Contains("b/bad.png"));
}

}  // namespace quell
