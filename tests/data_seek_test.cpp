// The first batch of a run that goes on at step 10^6, as it is made when the data were just opened: nothing is read or drawn on the way
// there.
#include <catch2/catch.hpp>

#include "base/clock.h"
#include "data/image_source.h"
#include "image_support.h"

using namespace quell;
using namespace quell::testing;

namespace {

constexpr int64_t batch = 64, far = 1'000'000 * batch;

// Opening counts too.
template <class Open>
void is_there_within_a_second(const Open& open) {
  const Timer timer;
  const HostBatch first = open().read(far, batch);
  CHECK(timer.seconds() < 1);
  CHECK(first.positions.front() == far);
  CHECK(first.positions.back() == far + batch - 1);
  CHECK(first.inputs.size() + first.images.size() > 0);
}

}  // namespace

TEST_CASE("tokens are read at step 10^6 within a second, their blocks looked at", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, std::string(4 << 20, 'a'), "byte", 0, 1 << 20, 1 << 16);
  is_there_within_a_second([&] { return TokenSource(open_set(set), 1024, 1, true); });
}

TEST_CASE("images are read at step 10^6 within a second, from an IDX pair and from a folder", "[unit]") {
  TemporaryFolder folder;
  write_idx_pair(folder / "pair", 28, 28, std::string(10'000, '\1'));
  is_there_within_a_second([&] { return ImageSource(open_images(folder / "pair"), 28, 1, 1, {}); });
  const std::string picture = png_grey(28, 28, std::vector<uint8_t>(28 * 28, 7));
  for (int i = 0; i < 500; ++i) write_file(folder / ("folder/" + std::string(i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png"), picture);
  is_there_within_a_second([&] { return ImageSource(open_images(folder / "folder"), 28, 1, 1, {}); });
}
