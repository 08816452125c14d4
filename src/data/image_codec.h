// PNG and JPEG files to pixels of 8 bits. The kind is recognised by content; a file that is damaged or cut off is an error, also
// where the library would go on with grey. What is done to the picture: EXIF orientation is applied; 16 bits become 8 by
// dropping the lower ones; a palette is looked up; alpha and a transparent colour are composited over white; CMYK becomes RGB as
// (1 - ink)(1 - black); grey stays one channel. Colour profiles and gamma are not applied, of an animation the first picture is
// taken, a progressive JPEG is as fine as its scans make it, and a palette's index that has no colour is black.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "data/pixels.h"

namespace quell {

struct ImageLimits {
  int64_t pixels = int64_t{1} << 26;  // of the picture, from its header
  int64_t memory = int64_t{1} << 30;  // that the library may ask for besides
};

// Thread-safe. Throws DataError that begins with `name` and says what is wrong; nothing is decoded of a picture whose header
// is over the limits.
Pixels decode_image(std::string_view bytes, const std::string& name, const ImageLimits& limits = {});

// ---- parts of it ----

Pixels decode_png(std::string_view bytes, const std::string& name, const ImageLimits& limits);
Pixels decode_jpeg(std::string_view bytes, const std::string& name, const ImageLimits& limits);
// Throws DataError for a size of nothing or over the limit.
void check_size(uint64_t width, uint64_t height, const std::string& name, const ImageLimits& limits);

// How the picture lies (1 to 8, as the EXIF tag 0x0112 says), from a TIFF header on; 1 where it says nothing that makes sense.
int exif_orientation(std::string_view tiff);
Pixels turned(Pixels pixels, int orientation);

}  // namespace quell
