// Folders of images: what belongs to a set, in which order, and what is said of a folder that is none. Only names count here.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "data/image_folder.h"
#include "image_support.h"

using namespace quell;
using namespace quell::testing;

namespace {

using Names = std::vector<std::string>;

ImageFolder scan(const std::string& path) { return scan_image_folder(path, {}); }

void fill(const TemporaryFolder& folder, const Names& names) {
  for (const auto& name : names) write_file(folder / name, "x");
}

std::string said(const TemporaryFolder& folder) {
  std::string message = message_of([&] { scan(folder.path()); });
  for (size_t at; (at = message.find(folder.path())) != std::string::npos;) message.replace(at, folder.path().size(), "DIR");
  return message;
}

}  // namespace

TEST_CASE("classes and files come in the order of their names' bytes, whatever the folder's order and depth", "[unit]") {
  TemporaryFolder folder;
  fill(folder, {"b/2.png", "b/10.png", "a b/x.JPG", "B/deep/er/y.jpeg", "B/z.Png", "\xc3\xa4/q.jpg"});
  write_file(folder / "b/longer.png", "12345");
  const ImageFolder found = scan(folder.path());
  CHECK(found.classes == Names{"B", "a b", "b", "\xc3\xa4"});
  Names names;
  std::vector<int64_t> labels, bytes;
  for (const auto& file : found.files) {
    names.push_back(file.name);
    labels.push_back(file.label);
    bytes.push_back(file.bytes);
  }
  CHECK(names == Names{"B/deep/er/y.jpeg", "B/z.Png", "a b/x.JPG", "b/10.png", "b/2.png", "b/longer.png", "\xc3\xa4/q.jpg"});
  CHECK(labels == std::vector<int64_t>{0, 0, 1, 2, 2, 2, 3});
  CHECK(bytes == std::vector<int64_t>{1, 1, 1, 1, 1, 5, 1});
  CHECK(found.left_out == 0);
  CHECK(scan(folder.path() + "//").files.size() == 7);
}

TEST_CASE("what is no image of a class is left out and counted", "[unit]") {
  TemporaryFolder folder;
  fill(folder, {"a/1.png", "b/2.png"});
  fill(folder, {"README", "loose.png", "a/notes.txt", "a/png", "a/._1.png", "a/.hidden/3.png", ".ipynb_checkpoints/4.png"});
  const ImageFolder found = scan(folder.path());
  CHECK(found.classes == Names{"a", "b"});
  CHECK(found.files.size() == 2);
  CHECK(found.left_out == 7);
}

TEST_CASE("links to files and classes are followed, and loops are not entered", "[unit]") {
  TemporaryFolder folder, elsewhere;
  fill(elsewhere, {"real.png", "class/1.jpg"});
  fill(folder, {"a/1.png"});
  REQUIRE(symlink((elsewhere / "real.png").c_str(), (folder / "a/2.png").c_str()) == 0);
  REQUIRE(symlink((elsewhere / "class").c_str(), (folder / "b").c_str()) == 0);
  REQUIRE(symlink("..", (folder / "a/loop").c_str()) == 0);
  REQUIRE(symlink(".", (folder / "c").c_str()) == 0);  // a class that holds all classes, and itself
  const ImageFolder found = scan(folder.path());
  Names names;
  for (const auto& file : found.files) names.push_back(file.name);
  CHECK(names == Names{"a/1.png", "a/2.png", "b/1.jpg", "c/a/1.png", "c/a/2.png"});
  CHECK(found.left_out == 4);  // a/loop, c/a/loop, c/b, c/c
}

TEST_CASE("a link that leads nowhere and what is no file are errors", "[unit]") {
  TemporaryFolder folder;
  fill(folder, {"a/1.png"});
  REQUIRE(symlink("gone.png", (folder / "a/2.png").c_str()) == 0);
  CHECK(said(folder) == "DIR/a/2.png: is a link to what cannot be reached (No such file or directory): remove it or mend it");
  REQUIRE(unlink((folder / "a/2.png").c_str()) == 0);
  REQUIRE(symlink("2.png", (folder / "a/2.png").c_str()) == 0);
  CHECK(said(folder) ==
        "DIR/a/2.png: is a link to what cannot be reached (Too many levels of symbolic links): remove it or mend it");
  REQUIRE(unlink((folder / "a/2.png").c_str()) == 0);
  REQUIRE(mkfifo((folder / "a/2.png").c_str(), 0600) == 0);
  CHECK(said(folder) == "DIR/a/2.png: is no regular file: remove it");
}

TEST_CASE("a folder that is no set of classes is an error that says what it is", "[unit]") {
  TemporaryFolder empty, loose, gap, splits;
  CHECK(said(empty) == "DIR: has no folder, and there must be one for each class");
  fill(loose, {"1.png", "2.jpg", "3.txt"});
  CHECK(said(loose) == "DIR: has no folder, and there must be one for each class (2 images lie in it without one)");
  fill(gap, {"a/1.png", "b/notes.txt", "c/2.png"});
  CHECK(said(gap) == "DIR/b: holds no .png, .jpg or .jpeg file: every folder here is a class; remove it or fill it");
  fill(splits, {"val/cat/1.png", "train/cat/2.png"});
  CHECK(said(splits) == "DIR: holds the parts of a set (train, val) and not its classes; did you mean DIR/train?");
}

TEST_CASE("names that cannot be printed are errors", "[unit]") {
  TemporaryFolder latin, newline, below;
  fill(latin, {"caf\xe9/1.png"});
  CHECK(said(latin) == "DIR: holds the name \"caf\\xe9\", which is not printable UTF-8: rename it");
  fill(newline, {"a/1\n.png"});
  CHECK(said(newline) == "DIR/a: holds the name \"1\\x0a.png\", which is not printable UTF-8: rename it");
  fill(below, {"a/\xff/1.png"});
  CHECK(said(below) == "DIR/a: holds the name \"\\xff\", which is not printable UTF-8: rename it");
}

TEST_CASE("listing says how far it is", "[unit]") {
  TemporaryFolder folder;
  fill(folder, {"a/1.png", "b/1.png", "c/1.png"});
  std::vector<std::pair<uint64_t, uint64_t>> seen;
  scan_image_folder(folder.path(), {[&](const std::string&, uint64_t done, uint64_t total) { seen.emplace_back(done, total); }});
  CHECK(seen == std::vector<std::pair<uint64_t, uint64_t>>{{1, 3}, {2, 3}, {3, 3}});
}
