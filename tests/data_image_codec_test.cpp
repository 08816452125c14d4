// PNG and JPEG files: pixels held against PngSuite's dumps and pictures that JPEG stores exactly; damage, lies and bombs.
#include <malloc.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/text.h"
#include "data/image_codec.h"
#include "image_support.h"

using namespace quell;
using namespace quell::testing;
using Bytes = std::vector<uint8_t>;

namespace {

std::string said(const std::string& bytes, const ImageLimits& limits = {}) {
  try {
    decode_image(bytes, "x", limits);
  } catch (const DataError& error) {
    return error.what();
  }
  return "(accepted)";
}

Pixels decoded(const std::string& bytes) { return decode_image(bytes, "x"); }

// Of blocks of 8 x 8 equal pixels, `columns` side by side: what a JPEG of quality 100 stores without loss.
Bytes in_blocks(const Bytes& blocks, size_t columns, size_t channels = 1) {
  Bytes out;
  const size_t rows = blocks.size() / columns / channels;
  for (size_t y = 0; y < 8 * rows; ++y) {
    for (size_t x = 0; x < 8 * columns; ++x) {
      const size_t block = y / 8 * columns + x / 8;
      for (size_t c = 0; c < channels; ++c) out.push_back(blocks[block * channels + c]);
    }
  }
  return out;
}

const Bytes six{10, 60, 110, 160, 210, 250};

std::string grey_jpeg(const JpegOptions& more = {}) {
  JpegOptions options = more;
  options.in = options.stored = JCS_GRAYSCALE;
  return jpeg(16, 24, 1, in_blocks(six, 2), options);
}

// One picture of one colour.
std::string colour_jpeg(const Bytes& colour, const JpegOptions& options) {
  Bytes values;
  for (int i = 0; i < 16 * 16; ++i) values.insert(values.end(), colour.begin(), colour.end());
  return jpeg(16, 16, static_cast<int>(colour.size()), values, options);
}

// An EXIF block whose only entry is the orientation, in either byte order.
std::string tiff(bool little, int orientation, int type = 3) {
  const auto number = [&](uint32_t value, int width) {
    std::string out;
    for (int i = 0; i < width; ++i) out += static_cast<char>(value >> 8 * (little ? i : width - 1 - i));
    return out;
  };
  return (little ? "II" : "MM") + number(42, 2) + number(8, 4) + number(1, 2) + number(0x0112, 2) +
         number(static_cast<uint32_t>(type), 2) + number(1, 4) + number(static_cast<uint32_t>(orientation), 2) + number(0, 2) +
         number(0, 4);
}
const std::string exif_begin("Exif\0\0", 6);

void check_pixels(const Pixels& pixels, int64_t width, int64_t height, int64_t channels, const Bytes& values) {
  CHECK((pixels.width == width && pixels.height == height && pixels.channels == channels));
  CHECK(pixels.values == values);
}

int largest_difference(const Bytes& a, const Bytes& b) {
  REQUIRE(a.size() == b.size());
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("every kind of PNG decodes to what PngSuite's dumps say", "[unit]") {
  const std::string folder = std::string(QUELL_GOLDEN) + "/images/";
  int seen = 0;
  for (const auto& name : files::list(folder)) {
    if (!name.ends_with(".png")) continue;
    CAPTURE(name);
    const std::string stem = folder + name.substr(0, name.size() - 4);
    const bool grey = files::exists(stem + ".pgm");
    const Pixels pixels = decoded(files::read(folder + name));
    std::string made = cat(grey ? "P5\n" : "P6\n", pixels.width, " ", pixels.height, "\n255\n");
    made.append(reinterpret_cast<const char*>(pixels.values.data()), pixels.values.size());
    CHECK(pixels.channels == (grey ? 1 : 3));
    CHECK((made == files::read(stem + (grey ? ".pgm" : ".ppm"))));
    ++seen;
  }
  CHECK(seen == 19);
}

TEST_CASE("alpha is composited over white", "[unit]") {
  const std::string rgba = png(3, 1, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 8, {10, 20, 30, 255, 10, 20, 30, 0, 0, 100, 255, 128});
  check_pixels(decoded(rgba), 3, 1, 3,
               {10, 20, 30, 255, 255, 255, 127, 177, 255});  // 255 - 255 * 128 / 255; 255 - 155 * 128 / 255
  const std::string grey = png(2, 1, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 8, {0, 51, 7, 255});
  check_pixels(decoded(grey), 2, 1, 1, {204, 7});
}

TEST_CASE("a JPEG of equal blocks decodes to those, baseline and progressive", "[unit]") {
  check_pixels(decoded(grey_jpeg()), 16, 24, 1, in_blocks(six, 2));
  check_pixels(decoded(grey_jpeg({.progressive = true})), 16, 24, 1, in_blocks(six, 2));
  const Bytes colours{255, 0, 0, 0, 255, 0, 0, 0, 255, 12, 34, 56};
  const std::string rgb = jpeg(16, 16, 3, in_blocks(colours, 2, 3), {.stored = JCS_RGB});
  check_pixels(decoded(rgb), 16, 16, 3, in_blocks(colours, 2, 3));
}

// Y, Cb and Cr are each rounded by at most 1/2, and the largest factor is 1.772: less than 1/2 + 1/2 * (1 + 1.772) = 1.9, so a
// whole number is off by 1 at most.
TEST_CASE("colour stored as luma and chroma comes back, also at half the resolution", "[unit]") {
  for (const Bytes& colour : {Bytes{200, 30, 90}, Bytes{0, 0, 255}, Bytes{255, 255, 0}, Bytes{1, 2, 3}}) {
    for (const int chroma : {1, 2}) {
      const Pixels pixels = decoded(colour_jpeg(colour, {.chroma = chroma}));
      CHECK(pixels.channels == 3);
      for (size_t i = 0; i < pixels.values.size(); ++i) REQUIRE(std::abs(pixels.values[i] - colour[i % 3]) <= 1);
    }
  }
}

TEST_CASE("ink becomes light, inverted where Adobe's marker stands", "[unit]") {
  const Bytes ink{255, 128, 0, 204};
  const auto first = [](const Pixels& pixels) { return Bytes(pixels.values.begin(), pixels.values.begin() + 3); };
  CHECK(first(decoded(colour_jpeg(ink, {.in = JCS_CMYK, .stored = JCS_CMYK}))) == Bytes{204, 102, 0});  // x * 204 / 255
  JpegOptions without{.in = JCS_CMYK, .stored = JCS_CMYK};
  without.more = [](jpeg_compress_struct& info) { info.write_Adobe_marker = FALSE; };
  CHECK(first(decoded(colour_jpeg(ink, without))) == Bytes{0, 25, 51});  // (255 - x) * 51 / 255
  const Pixels ycck = decoded(colour_jpeg({255, 128, 0, 255}, {.in = JCS_CMYK, .stored = JCS_YCCK}));
  CHECK(largest_difference(first(ycck), {255, 128, 0}) <= 1);  // as above
}

TEST_CASE("EXIF orientation is applied, in JPEG and PNG and both byte orders", "[unit]") {
  const Bytes a{0, 1, 2, 3, 4, 5};  // stored: 01 / 23 / 45
  const std::vector<Bytes> upright{{0, 1, 2, 3, 4, 5}, {1, 0, 3, 2, 5, 4}, {5, 4, 3, 2, 1, 0}, {4, 5, 2, 3, 0, 1},
                                   {0, 2, 4, 1, 3, 5}, {4, 2, 0, 5, 3, 1}, {5, 3, 1, 4, 2, 0}, {1, 3, 5, 0, 2, 4}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const size_t columns = orientation < 5 ? 2 : 3, rows = 5 - columns;
    Bytes expected;
    for (const uint8_t block : upright[static_cast<size_t>(orientation) - 1]) expected.push_back(six[block]);
    for (const bool little : {true, false}) {
      CAPTURE(orientation, little);
      const std::string exif = tiff(little, orientation);
      check_pixels(decoded(grey_jpeg({.exif = exif_begin + exif})), static_cast<int64_t>(8 * columns),
                   static_cast<int64_t>(8 * rows), 1, in_blocks(expected, columns));
      const auto set = [&](spng_ctx* context) {
        spng_exif chunk{exif.size(), const_cast<char*>(exif.data())};
        REQUIRE(spng_set_exif(context, &chunk) == 0);
      };
      check_pixels(decoded(png(2, 3, SPNG_COLOR_TYPE_GRAYSCALE, 8, six, set)), static_cast<int64_t>(columns),
                   static_cast<int64_t>(rows), 1, expected);
    }
  }
}

TEST_CASE("an EXIF block that makes no sense leaves the picture as it is", "[unit]") {
  const std::string good = tiff(true, 6);
  std::vector<std::string> blocks{"", "II", "something else entirely", tiff(true, 0), tiff(false, 9), tiff(true, 6, 4)};
  for (size_t size = 0; size < good.size() - 6; ++size) blocks.push_back(good.substr(0, size));
  std::string far = good;
  far[6] = '\x7f';  // a directory beyond the end
  blocks.push_back(far);
  for (const auto& block : blocks) {
    CHECK(exif_orientation(block) == 1);
    CHECK(decoded(grey_jpeg({.exif = exif_begin + block})).height == 24);
  }
  CHECK(exif_orientation(good) == 6);
}

TEST_CASE("a file that is cut anywhere is an error", "[unit]") {
  Bytes colours;
  for (int i = 0; i < 3 * 12; ++i) colours.push_back(static_cast<uint8_t>(i * 41));
  JpegOptions progressive{.progressive = true}, restarts;
  restarts.more = [](jpeg_compress_struct& info) { info.restart_interval = 1; };
  const Bytes blocks = in_blocks(colours, 4, 3);
  for (const std::string& whole : {jpeg(32, 24, 3, blocks, {}), jpeg(32, 24, 3, blocks, progressive),
                                   jpeg(32, 24, 3, blocks, restarts), png_rgb(4, 3, colours), png_grey(6, 6, colours)}) {
    REQUIRE(said(whole) == "(accepted)");
    for (size_t size = 0; size < whole.size(); ++size) {
      CAPTURE(size, whole.size());
      const std::string message = said(whole.substr(0, size));
      CHECK((message.starts_with("x: is damaged or cut off: ") || message.starts_with("x: is neither a PNG nor a JPEG file: ")));
    }
    CHECK(said(whole + "what cameras append") == "(accepted)");
  }
}

TEST_CASE("a JPEG whose picture ends before its file does is an error, not grey", "[unit]") {
  const std::string whole = grey_jpeg();
  CHECK(said(whole.substr(0, whole.size() - 8) + "\xff\xd9") ==
        "x: is damaged or cut off: Corrupt JPEG data: premature end of data segment");
}

TEST_CASE("a JPEG that lacks the scan of a colour is an error, not grey", "[unit]") {
  jpeg_scan_info scans[] = {{1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
  JpegOptions options;
  options.more = [&](jpeg_compress_struct& info) {
    info.scan_info = scans;
    info.num_scans = 3;
  };
  const std::string whole = colour_jpeg({200, 30, 90}, options);
  CHECK(said(whole) == "(accepted)");
  const size_t last = whole.rfind("\xff\xda");  // where the last scan begins
  CHECK(said(whole.substr(0, last) + "\xff\xd9") == "x: is damaged or cut off: a component of the picture has no scan");
}

TEST_CASE("no bit of a PNG can change unseen", "[unit]") {
  const auto with_transparent_colour = [](spng_ctx* context) {
    spng_trns colour = {.red = 1, .green = 2, .blue = 3};
    REQUIRE(spng_set_trns(context, &colour) == 0);
  };
  const std::string whole =
      png(2, 2, SPNG_COLOR_TYPE_TRUECOLOR, 8, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, with_transparent_colour);
  check_pixels(decoded(whole), 2, 2, 3, {255, 255, 255, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    CAPTURE(bit);
    CHECK(said(changed) != "(accepted)");
  }
}

TEST_CASE("a JPEG with a changed byte is a picture of the size it says or a DataError", "[unit]") {
  const std::string whole = grey_jpeg({.progressive = true});
  int errors = 0;
  for (size_t i = 3; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x15);
    try {
      const Pixels pixels = decode_image(changed, "x", {.pixels = 1 << 20});
      CHECK(static_cast<int64_t>(pixels.values.size()) == pixels.width * pixels.height * pixels.channels);
    } catch (const DataError&) {
      ++errors;
    }
  }
  CHECK(errors > 0);
}

TEST_CASE("a picture over the limits is refused from its header", "[unit]") {
  const std::string big_png = png_grey(6, 4, Bytes(24)), big_jpeg = grey_jpeg();
  CHECK(said(big_png, {.pixels = 24}) == "(accepted)");
  CHECK(said(big_png, {.pixels = 23}) == "x: has 6 x 4 pixels, more than the 23 that an image may have");
  CHECK(said(big_jpeg, {.pixels = 384}) == "(accepted)");
  CHECK(said(big_jpeg, {.pixels = 383}) == "x: has 16 x 24 pixels, more than the 383 that an image may have");
  // A progressive picture is held as coefficients of two bytes until its last scan.
  const std::string progressive =
      jpeg(512, 512, 1, Bytes(512 * 512), {.in = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .progressive = true});
  CHECK(said(progressive) == "(accepted)");
  CHECK(said(progressive, {.memory = 512 * 512}).starts_with("x: is damaged or cut off: "));
}

TEST_CASE("a file that is refused leaves no memory behind", "[unit]") {
  const std::string whole = grey_jpeg(), png = png_grey(6, 4, Bytes(24));
  const auto refuse_all = [&] {
    for (size_t part : {4, 2}) {
      CHECK(said(whole.substr(0, whole.size() / part)) != "(accepted)");
      CHECK(said(png.substr(0, png.size() / part)) != "(accepted)");
    }
    CHECK(said(whole, {.pixels = 1}) != "(accepted)");
    CHECK(said(png, {.pixels = 1}) != "(accepted)");
  };
  refuse_all();
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 100; ++i) refuse_all();
  CHECK(mallinfo2().uordblks < before + 100 * 1000);  // what either library holds for a picture is some kilobytes
}

TEST_CASE("a text that unpacks to more than the limit is refused", "[unit]") {
  std::string text(1 << 22, 'a');
  const auto with_text = [&](spng_ctx* context) {
    spng_text chunk = {};
    std::snprintf(chunk.keyword, sizeof chunk.keyword, "Comment");
    chunk.type = SPNG_ZTXT;
    chunk.length = text.size();
    chunk.text = text.data();
    REQUIRE(spng_set_text(context, &chunk, 1) == 0);
  };
  const std::string file = png(1, 1, SPNG_COLOR_TYPE_GRAYSCALE, 8, {7}, with_text);
  CHECK(file.size() < 8192);
  CHECK(said(file) == "(accepted)");
  CHECK(said(file, {.memory = 1 << 21}).starts_with("x: is damaged or cut off: "));
}

TEST_CASE("a JPEG with very many scans is refused", "[unit]") {
  std::vector<jpeg_scan_info> scans{{1, {0}, 0, 0, 0, 0}};
  for (int k = 1; k < 64; ++k) scans.push_back({1, {0}, k, k, 0, 3});
  for (int bit = 2; bit >= 0; --bit) {
    for (int k = 1; k < 64; ++k) scans.push_back({1, {0}, k, k, bit + 1, bit});
  }
  const auto file = [&](size_t count) {
    JpegOptions options;
    options.more = [&](jpeg_compress_struct& info) {
      info.scan_info = scans.data();
      info.num_scans = static_cast<int>(count);
    };
    return grey_jpeg(options);
  };
  CHECK(said(file(200)) == "(accepted)");
  CHECK(said(file(201)) == "x: is damaged or cut off: more than 200 scans");
}

TEST_CASE("what is neither is recognised by its content", "[unit]") {
  const auto neither = [](const std::string& what) { return "x: is neither a PNG nor a JPEG file: " + what; };
  CHECK(said("") == neither("it is empty"));
  CHECK(said("GIF89a...") == neither("it seems to be a GIF"));
  CHECK(said(std::string("RIFF\0\0\0\0WEBP", 12)) == neither("it seems to be a WebP"));
  CHECK(said("version https://git-lfs.github.com/spec/v1\n") == neither("it seems to be a Git LFS pointer"));
  CHECK(said(std::string("\0\0\0 ftypavif....", 16)) == neither("it seems to be an AVIF or HEIC"));
  CHECK(said("<!DOCTYPE html>") == neither("it seems to be a text (HTML, SVG)"));
  CHECK(said("hello") == neither("it begins with something else"));
  CHECK(said(jpeg(8, 8, 2, Bytes(128), {.in = JCS_UNKNOWN, .stored = JCS_UNKNOWN})) ==
        "x: has 2 components; 1, 3 or 4 can be decoded");
}
