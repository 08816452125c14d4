// Image sets: which path means what, labels and classes, digests, and images that are gone or damaged.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "data/image_set.h"
#include "image_support.h"

using namespace quell;
using namespace quell::testing;

namespace {

using Names = std::vector<std::string>;

std::string said(const TemporaryFolder& folder, const std::string& name) {
  std::string message = message_of([&] { open_images(folder / name); });
  for (size_t at; (at = message.find(folder.path())) != std::string::npos;) message.replace(at, folder.path().size(), "DIR");
  return message;
}

// Classes "cat" and "dog" with two and one grey pictures.
void write_pets(const TemporaryFolder& folder) {
  write_file(folder / "pets/cat/a.png", png_grey(2, 1, {1, 2}));
  write_file(folder / "pets/cat/b.png", png_grey(1, 2, {3, 4}));
  write_file(folder / "pets/dog/a.png", png_rgb(1, 1, {5, 6, 7}));
}

}  // namespace

TEST_CASE("an IDX pair is opened by what stands before its endings", "[unit]") {
  TemporaryFolder folder;
  write_idx_pair(folder / "t10k", 2, 3, std::string("\2\0\5", 3));
  const ImageSet set = open_images(folder / "t10k");
  CHECK(set.size() == 3);
  CHECK(set.classes() == 6);
  CHECK(set.class_names() == Names{"0", "1", "2", "3", "4", "5"});
  CHECK((set.label(0) == 2 && set.label(1) == 0 && set.label(2) == 5));
  CHECK(set.path() == folder / "t10k");
  CHECK(set.name(1) == (folder / "t10k-images-idx3-ubyte") + ": image 1");
  const Pixels pixels = set.read(1);
  CHECK((pixels.width == 3 && pixels.height == 2 && pixels.channels == 1));
  CHECK(std::string(pixels.values.begin(), pixels.values.end()) == varied(18).substr(6, 6));
  for (const int64_t outside : {-1, 3}) {
    CHECK_THROWS_AS(set.read(outside), Bug);
    CHECK_THROWS_AS(set.label(outside), Bug);
  }
}

TEST_CASE("a folder of classes is opened by its path, and colour stays colour", "[unit]") {
  TemporaryFolder folder;
  write_pets(folder);
  const ImageSet set = open_images(folder / "pets");
  CHECK(set.size() == 3);
  CHECK(set.class_names() == Names{"cat", "dog"});
  CHECK((set.label(0) == 0 && set.label(1) == 0 && set.label(2) == 1));
  CHECK(set.name(2) == folder / "pets/dog/a.png");
  CHECK(set.read(1).values == std::vector<uint8_t>{3, 4});
  CHECK((set.read(2).channels == 3 && set.read(2).values == std::vector<uint8_t>{5, 6, 7}));
  CHECK_THROWS_AS(set.read(3), Bug);
}

TEST_CASE("a path that is no set is an error that says what was probably meant", "[unit]") {
  TemporaryFolder folder;
  files::make_folders(folder / "mnist");
  write_idx_pair(folder / "mnist/train", 1, 1, "\1");
  write_file(folder / "text", "x");
  CHECK(said(folder, "nowhere") == "DIR/nowhere: is not there");
  CHECK(said(folder, "text") ==
        "DIR/text: is neither a folder with a folder for each class nor what stands before -images-idx3-ubyte");
  CHECK(said(folder, "mnist") == "DIR/mnist: holds IDX files; did you mean DIR/mnist/train?");
  CHECK(said(folder, "mnist/train-images-idx3-ubyte") ==
        "DIR/mnist/train-images-idx3-ubyte: is neither a folder with a folder for each class nor what stands before "
        "-images-idx3-ubyte; did you mean DIR/mnist/train?");
  CHECK(said(folder, "mnist/train-images-idx3-ubyte.gz") ==
        "DIR/mnist/train-images-idx3-ubyte.gz: is not there; did you mean DIR/mnist/train?");
  files::make_folders(folder / "mnist/train");
  CHECK(said(folder, "mnist/train") ==
        "DIR/mnist/train: is a folder, and DIR/mnist/train-images-idx3-ubyte is there too: rename one of them");
}

TEST_CASE("images and labels that do not belong together are errors", "[unit]") {
  TemporaryFolder folder;
  write_idx_pair(folder / "a", 1, 1, "\1\2");
  overwrite(folder / "a-labels-idx1-ubyte", idx({3}, "\1\2\3"));
  CHECK(said(folder, "a") ==
        "DIR/a-labels-idx1-ubyte: byte 4: has 3 labels, and DIR/a-images-idx3-ubyte has 2 images: they do not "
        "belong together");
  REQUIRE(unlink((folder / "a-labels-idx1-ubyte").c_str()) == 0);
  CHECK(said(folder, "a") == "DIR/a-images-idx3-ubyte: has no DIR/a-labels-idx1-ubyte(.gz) beside it");
}

TEST_CASE("more classes than the model has are found, with the place of the label", "[unit]") {
  TemporaryFolder folder;
  write_idx_pair(folder / "a", 1, 1, "\1\3\4");
  write_pets(folder);
  const ImageSet pair = open_images(folder / "a"), pets = open_images(folder / "pets");
  CHECK_NOTHROW(pair.check_classes(5));
  CHECK(message_of([&] { pair.check_classes(3); }) ==
        (folder / "a-labels-idx1-ubyte") + ": byte 9: the label of image 1 is 3, and the model tells 3 classes apart (0 to 2)");
  CHECK_NOTHROW(pets.check_classes(2));
  CHECK(message_of([&] { pets.check_classes(1); }) ==
        (folder / "pets") + ": has 2 classes (folders), and the model tells 1 apart");
}

TEST_CASE("the digest follows images and labels of a pair, and names, sizes and classes of a folder", "[unit]") {
  TemporaryFolder folder;
  const auto pair = [&](const char* name, uint32_t height, uint32_t width, const std::string& labels, const std::string& values) {
    write_idx_pair(folder / name, height, width, labels, values);
    return open_images(folder / name).digest();
  };
  const std::string a = pair("a", 2, 3, "\1", "abcdef");
  CHECK(a.size() == 32);
  CHECK(a == pair("b", 2, 3, "\1", "abcdef"));
  CHECK(a != pair("c", 2, 3, "\2", "abcdef"));
  CHECK(a != pair("d", 2, 3, "\1", "abcdeg"));
  CHECK(a != pair("e", 3, 2, "\1", "abcdef"));

  write_pets(folder);
  const std::string before = open_images(folder / "pets").digest();
  CHECK(before == open_images(folder / "pets").digest());
  const std::string a_file = files::read(folder / "pets/cat/a.png");
  write_file(folder / "pets/cat/a.png", a_file + "x");
  CHECK(before != open_images(folder / "pets").digest());
  write_file(folder / "pets/cat/a.png", a_file);
  CHECK(before == open_images(folder / "pets").digest());
  REQUIRE(rename((folder / "pets/cat/a.png").c_str(), (folder / "pets/cat/c.png").c_str()) == 0);
  CHECK(before != open_images(folder / "pets").digest());
}

TEST_CASE("an image that is gone, damaged or too large is an error that names it", "[unit]") {
  TemporaryFolder folder;
  write_pets(folder);
  const ImageSet set = open_images(folder / "pets");
  const std::string path = folder / "pets/cat/a.png";
  write_file(path, "GIF89a");
  CHECK(message_of([&] { set.read(0); }) == path + ": is neither a PNG nor a JPEG file: it seems to be a GIF");
  REQUIRE(truncate(path.c_str(), (int64_t{256} << 20) + 1) == 0);
  CHECK(message_of([&] { set.read(0); }) == path + ": has 268435457 bytes, more than the 268435456 that an image may have");
  REQUIRE(unlink(path.c_str()) == 0);
  CHECK(message_of([&] { set.read(0); }) == path + ": is gone; it was there when the set was opened");
}

TEST_CASE("what is left out of a folder is noted", "[unit]") {
  TemporaryFolder folder;
  write_pets(folder);
  Names notes;
  const Progress progress{{}, [&](const std::string& line) { notes.push_back(line); }};
  ImageSet::open(folder / "pets", progress);
  CHECK(notes.empty());
  write_file(folder / "pets/labels.csv", "");
  ImageSet::open(folder / "pets", progress);
  CHECK(notes == Names{(folder / "pets") + ": left out, being no images of a class: 1 files, folders or links"});
}

TEST_CASE("Fashion-MNIST opens from its package", "[unit]") {
  const ImageSet set = open_images("/usr/share/datasets/fashion-mnist/t10k");
  CHECK((set.size() == 10000 && set.classes() == 10 && set.label(0) == 9));
  CHECK((set.read(9999).width == 28 && set.read(9999).height == 28));
}
