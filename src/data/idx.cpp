#include "data/idx.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "data/gzip.h"

namespace quell {
namespace {

std::string hex(std::span<const uint8_t> bytes) {
  std::string out;
  for (const uint8_t byte : bytes) {
    constexpr const char* digits = "0123456789abcdef";
    if (!out.empty()) out += ' ';
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out.empty() ? "nothing" : out;
}

// What a file with another magic probably is.
std::string guess(const std::array<uint8_t, 4>& magic) {
  if (magic[0] != 0 || magic[1] != 0) return "this is no IDX file";
  if (magic[2] != 8) return "its elements are no unsigned bytes";
  if (magic[3] == 1) return "this is a file of labels";
  if (magic[3] == 3) return "this is a file of images";
  return cat("it has ", int{magic[3]}, " dimensions");
}

// "60000 images of 28 x 28", "60000 labels"
std::string shape(const std::vector<int64_t>& sizes) {
  return sizes.size() == 1 ? cat(sizes[0], " labels") : cat(sizes[0], " images of ", sizes[1], " x ", sizes[2]);
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path) {}

  std::vector<int64_t> sizes(uint8_t dimensions) {
    std::array<uint8_t, 4> word{};
    const std::array<uint8_t, 4> wanted{0, 0, 8, dimensions};
    const size_t have = file_.read(word.data(), 4);
    if (have < 4 || word != wanted) {
      throw DataError(cat(path_, ": byte 0: wanted ", hex(wanted), " (unsigned bytes, ", int{dimensions}, " dimension",
                          dimensions == 1 ? "" : "s", "), found ", hex({word.data(), have}),
                          have < 4 ? ": the file ends here" : ": " + guess(word)));
    }
    std::vector<int64_t> sizes;
    for (uint8_t i = 0; i < dimensions; ++i) {
      const int64_t at = file_.position();
      if (file_.read(word.data(), 4) < 4)
        throw DataError(cat(path_, ": byte ", at, ": wanted the size of dimension ", int{i}, ", and the file ends"));
      sizes.push_back(int64_t{word[0]} << 24 | word[1] << 16 | word[2] << 8 | word[3]);
      if (sizes.back() == 0) throw DataError(cat(path_, ": byte ", at, ": the size of dimension ", int{i}, " is 0"));
    }
    return sizes;
  }

  std::vector<uint8_t> values(const std::vector<int64_t>& sizes, int64_t limit) {
    const int64_t header = file_.position();
    unsigned __int128 product = 1;
    for (const int64_t size : sizes) product *= static_cast<uint64_t>(size);
    if (product > static_cast<uint64_t>(limit)) {
      throw DataError(cat(path_, ": byte 4: ", shape(sizes), " are more than the ", human_bytes(static_cast<double>(limit)),
                          " that are kept in memory: the header is damaged, or this set belongs into a folder of images"));
    }
    const auto wanted = static_cast<int64_t>(product);
    std::vector<uint8_t> values;
    // In parts and not more than can be there, so that a header that lies costs no memory.
    values.reserve(std::min(static_cast<uint64_t>(wanted), file_.most_left()));
    while (static_cast<int64_t>(values.size()) < wanted) {
      constexpr size_t part = size_t{64} << 20;
      const size_t before = values.size(), now = std::min(part, static_cast<size_t>(wanted) - before);
      values.resize(before + now);
      if (file_.read(values.data() + before, now) < now) {
        throw DataError(cat(path_, ": byte ", file_.position(), unpacked(), ": the data end here, and ", shape(sizes), " need ",
                            header + wanted, " bytes: the file is cut off; copy it again"));
      }
    }
    uint8_t more = 0;
    if (file_.read(&more, 1) > 0) {
      throw DataError(cat(path_, ": byte ", header + wanted, unpacked(), ": ", shape(sizes),
                          " end here, and other bytes follow: the header or the file is damaged"));
    }
    return values;
  }

 private:
  const char* unpacked() const { return file_.is_packed() ? " (unpacked)" : ""; }
  std::string path_;
  Unpacking file_;
};

}  // namespace

IdxImages read_idx_images(const std::string& path, int64_t limit) {
  Reader reader(path);
  const std::vector<int64_t> sizes = reader.sizes(3);
  return {sizes[0], sizes[1], sizes[2], reader.values(sizes, limit)};
}

std::vector<uint8_t> read_idx_labels(const std::string& path, int64_t limit) {
  Reader reader(path);
  const std::vector<int64_t> sizes = reader.sizes(1);
  return reader.values(sizes, limit);
}

}  // namespace quell
