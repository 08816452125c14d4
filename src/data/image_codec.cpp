#include "data/image_codec.h"

#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

using namespace std::string_view_literals;

constexpr auto png_signature = "\x89PNG\r\n\x1a\n"sv;
constexpr auto jpeg_signature = "\xff\xd8\xff"sv;

// What a file is that is neither.
std::string kind_of(std::string_view bytes) {
  constexpr std::array<std::pair<std::string_view, const char*>, 9> known{{{"GIF8"sv, "a GIF"},
                                                                           {"BM"sv, "a BMP"},
                                                                           {"II*\0"sv, "a TIFF"},
                                                                           {"MM\0*"sv, "a TIFF"},
                                                                           {"RIFF"sv, "a WebP"},
                                                                           {"\0\0\0\x0cjP"sv, "a JPEG 2000"},
                                                                           {"\xff\x0a"sv, "a JPEG XL"},
                                                                           {"version https://git-lfs"sv, "a Git LFS pointer"},
                                                                           {"<"sv, "a text (HTML, SVG)"}}};
  if (bytes.empty()) return "it is empty";
  for (const auto& [begin, name] : known) {
    if (bytes.starts_with(begin)) return cat("it seems to be ", name);
  }
  if (bytes.size() > 12 && bytes.substr(4, 4) == "ftyp") return "it seems to be an AVIF or HEIC";
  return "it begins with something else";
}

// Integers of a TIFF header in its own byte order; nothing where they lie outside.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}
  std::optional<uint32_t> get(uint64_t at, int width) const {
    if (at + static_cast<uint64_t>(width) > bytes_.size()) return std::nullopt;
    uint32_t value = 0;
    for (int i = 0; i < width; ++i) {
      const auto byte = static_cast<unsigned char>(bytes_[at + static_cast<uint64_t>(little_ ? width - 1 - i : i)]);
      value = value << 8 | byte;
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool little_;
};

}  // namespace

Pixels decode_image(std::string_view bytes, const std::string& name, const ImageLimits& limits) {
  if (bytes.starts_with(png_signature)) return decode_png(bytes, name, limits);
  if (bytes.starts_with(jpeg_signature)) return decode_jpeg(bytes, name, limits);
  throw DataError(cat(name, ": is neither a PNG nor a JPEG file: ", kind_of(bytes)));
}

void check_size(uint64_t width, uint64_t height, const std::string& name, const ImageLimits& limits) {
  if (width == 0 || height == 0) throw DataError(cat(name, ": is damaged: its header says ", width, " x ", height, " pixels"));
  if (width > static_cast<uint64_t>(limits.pixels) / height) {
    throw DataError(
        cat(name, ": has ", width, " x ", height, " pixels, more than the ", limits.pixels, " that an image may have"));
  }
}

int exif_orientation(std::string_view tiff) {
  constexpr uint32_t orientation_tag = 0x0112, short_type = 3;
  if (!tiff.starts_with("II*\0"sv) && !tiff.starts_with("MM\0*"sv)) return 1;
  const Tiff header(tiff);
  const uint64_t directory = header.get(4, 4).value_or(0);
  const uint64_t entries = header.get(directory, 2).value_or(0);
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t at = directory + 2 + 12 * i;
    if (header.get(at, 2) != orientation_tag) continue;
    const uint32_t value = header.get(at + 8, 2).value_or(0);
    return header.get(at + 2, 2) == short_type && value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

// The tag names where the stored picture's first row and first column belong: 5 to 8 exchange rows and columns.
Pixels turned(Pixels stored, int orientation) {
  if (orientation <= 1 || orientation > 8) return stored;
  const bool transposed = orientation >= 5;
  const bool mirrored = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool upside_down = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Pixels out{transposed ? stored.height : stored.width, transposed ? stored.width : stored.height, stored.channels, {}};
  out.values.reserve(stored.values.size());
  for (int64_t y = 0; y < out.height; ++y) {
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t column = mirrored ? out.width - 1 - x : x, row = upside_down ? out.height - 1 - y : y;
      const int64_t from = transposed ? column * stored.width + row : row * stored.width + column;
      const auto pixel = stored.values.begin() + from * stored.channels;
      out.values.insert(out.values.end(), pixel, pixel + stored.channels);
    }
  }
  return out;
}

}  // namespace quell
