// IDX files: what they say, and what is said of those that are wrong.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/idx.h"
#include "image_support.h"

using namespace quell;
using namespace quell::testing;

namespace {

// What is said of a file of images with these bytes, without the path.
std::string said(const std::string& bytes, int64_t limit = idx_limit) {
  TemporaryFolder folder;
  const std::string path = folder / "x";
  overwrite(path, bytes);
  try {
    read_idx_images(path, limit);
  } catch (const DataError& error) {
    const std::string message = error.what();
    CHECK(message.starts_with(path + ": "));
    return message.substr(std::min(message.size(), path.size() + 2));
  }
  return "(accepted)";
}

const std::string good = idx({2, 3, 4}, varied(24));

}  // namespace

TEST_CASE("images and labels are read, plain and packed", "[unit]") {
  TemporaryFolder folder;
  const std::string values = varied(24), labels{'\0', '\xff', '\7'};
  const std::string in_two = gzip(good.substr(0, 20)) + gzip(good.substr(20));  // a gzip file may have several members
  for (const auto& bytes : {good, gzip(good), in_two}) {
    overwrite(folder / "x", bytes);
    const IdxImages images = read_idx_images(folder / "x");
    CHECK((images.count == 2 && images.height == 3 && images.width == 4));
    CHECK(std::string(images.values.begin(), images.values.end()) == values);
  }
  for (const auto& bytes : {idx({3}, labels), gzip(idx({3}, labels))}) {
    overwrite(folder / "x", bytes);
    CHECK(read_idx_labels(folder / "x") == std::vector<uint8_t>{0, 255, 7});
  }
}

TEST_CASE("a file of something else is recognised", "[unit]") {
  const std::string wanted = "byte 0: wanted 00 00 08 03 (unsigned bytes, 3 dimensions), found ";
  CHECK(said("") == wanted + "nothing: the file ends here");
  CHECK(said(good.substr(0, 3)) == wanted + "00 00 08: the file ends here");
  CHECK(said(idx({3}, "abc")) == wanted + "00 00 08 01: this is a file of labels");
  CHECK(said(idx({1, 1, 1, 1}, "a")) == wanted + "00 00 08 04: it has 4 dimensions");
  CHECK(said(std::string("\0\0\x0d\3", 4)) == wanted + "00 00 0d 03: its elements are no unsigned bytes");
  CHECK(said("\x89PNG") == wanted + "89 50 4e 47: this is no IDX file");
  TemporaryFolder folder;
  overwrite(folder / "x", good);
  CHECK(message_of([&] { read_idx_labels(folder / "x"); }) ==
        (folder / "x") +
            ": byte 0: wanted 00 00 08 01 (unsigned bytes, 1 dimension), found 00 00 08 03: this is a file of images");
}

TEST_CASE("a file that is cut anywhere, or has a byte too many, is an error, packed too", "[unit]") {
  for (size_t size = 4; size < good.size(); ++size) {
    CAPTURE(size);
    const std::string place =
        size < 16 ? cat("byte ", size / 4 * 4, ": wanted the size of dimension ", size / 4 - 1, ", and the file ends")
                  : cat("byte ", size,
                        ": the data end here, and 2 images of 3 x 4 need 40 bytes: the file is cut "
                        "off; copy it again");
    CHECK(said(good.substr(0, size)) == place);
  }
  CHECK(said(good + "x") == "byte 40: 2 images of 3 x 4 end here, and other bytes follow: the header or the file is damaged");
  CHECK(said(gzip(good.substr(0, 39))) ==
        "byte 39 (unpacked): the data end here, and 2 images of 3 x 4 need 40 bytes: the file is cut off; copy it again");
  CHECK(said(gzip(good + "x")) ==
        "byte 40 (unpacked): 2 images of 3 x 4 end here, and other bytes follow: the header or the file is damaged");
}

TEST_CASE("gzip data that are cut anywhere, changed or followed by something are errors", "[unit]") {
  const std::string packed = gzip(good);
  for (size_t size = 2; size < packed.size(); ++size) {
    CAPTURE(size);
    CHECK(said(packed.substr(0, size)) ==
          cat("byte ", size, ": the file ends inside its gzip data: it is cut off; copy it again"));
  }
  CHECK(said(packed + "tail") == cat("byte ", packed.size(), ": the gzip data end here, and 4 other bytes follow"));
  std::string changed = packed;
  changed[changed.size() - 6] ^= 1;  // of the checksum
  CHECK(said(changed) ==
        cat("near byte ", packed.size() - 4, ": the gzip data are damaged (incorrect data check); copy it again"));
}

TEST_CASE("a changed byte of a packed file is found, or is one that changes nothing", "[unit]") {
  const std::string packed = gzip(good);
  int found = 0;
  for (size_t i = 10; i < packed.size(); ++i) {  // the ten bytes before hold flags, a time and the system
    TemporaryFolder folder;
    std::string changed = packed;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    overwrite(folder / "x", changed);
    CAPTURE(i);
    try {
      const auto values = read_idx_images(folder / "x").values;
      CHECK(std::string(values.begin(), values.end()) == varied(24));
    } catch (const DataError&) {
      ++found;
    }
  }
  CHECK(found + 1 >= static_cast<int>(packed.size()) - 10);  // only the byte that ends the packed bits has some without meaning
}

TEST_CASE("a size of nothing and one that is too large are found in the header", "[unit]") {
  CHECK(said(idx({2, 0, 4}, "")) == "byte 8: the size of dimension 1 is 0");
  CHECK(said(good, 24) == "(accepted)");
  CHECK(said(good, 23) ==
        "byte 4: 2 images of 3 x 4 are more than the 23 B that are kept in memory: the header is damaged, or this "
        "set belongs into a folder of images");
  CHECK(said(idx({0xffffffff, 0xffffffff, 0xffffffff}, ""))
            .starts_with("byte 4: 4294967295 images of 4294967295 x 4294967295 are more"));
  // A header that lies within the limit: what is not there is not taken from the memory either.
  CHECK(said(idx({1 << 15, 1 << 9, 1 << 9}, "abc")) ==
        "byte 19: the data end here, and 32768 images of 512 x 512 need 8589934608 bytes: "
        "the file is cut off; copy it again");
}

TEST_CASE("Fashion-MNIST is what its authors published", "[unit]") {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  const IdxImages images = read_idx_images(folder + "t10k-images-idx3-ubyte.gz");
  const std::vector<uint8_t> labels = read_idx_labels(folder + "t10k-labels-idx1-ubyte.gz");
  CHECK((images.count == 10000 && images.height == 28 && images.width == 28));
  REQUIRE(labels.size() == 10000);
  std::vector<int> counts(10);
  for (const uint8_t label : labels) ++counts.at(label);
  CHECK(counts == std::vector<int>(10, 1000));
  CHECK(std::vector<uint8_t>(labels.begin(), labels.begin() + 10) == std::vector<uint8_t>{9, 2, 1, 1, 6, 1, 4, 6, 5, 7});
}
