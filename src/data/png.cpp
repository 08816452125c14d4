// PNG files by libspng.
#include <spng.h>

#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "data/image_codec.h"

namespace quell {
namespace {

struct Free {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, Free>;

void check(int status, const std::string& name) {
  if (status == SPNG_EMEM) throw MachineError(name + ": no memory to decode it");
  if (status != SPNG_OK) throw DataError(cat(name, ": is damaged or cut off: ", spng_strerror(status)));
}

// Whether all chunks up to the last one are there: libspng does not mind where that one lacks its end.
void check_whole(std::string_view bytes, const std::string& name) {
  constexpr size_t signature = 8, frame = 12;  // of a chunk: its length, type and checksum
  for (size_t at = signature; bytes.size() - at >= frame;) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[at + i]);
    if (length > bytes.size() - at - frame) break;
    if (bytes.substr(at + 4, 4) == "IEND") return;
    at += frame + length;
  }
  throw DataError(name + ": is damaged or cut off: the file ends before its last chunk does");
}

// Everything that is in the file is checked, hashes of chunks that matter little too: a transparent colour lies in such a chunk.
Context open(std::string_view bytes, const std::string& name, const ImageLimits& limits) {
  Context context(spng_ctx_new(0));
  if (!context) throw MachineError(name + ": no memory to decode it");
  constexpr size_t largest_chunk = size_t{64} << 20;  // of a text or a profile
  check(spng_set_crc_action(context.get(), SPNG_CRC_ERROR, SPNG_CRC_ERROR), name);
  check(spng_set_chunk_limits(context.get(), largest_chunk, static_cast<size_t>(limits.memory)), name);
  check(spng_set_png_buffer(context.get(), bytes.data(), bytes.size()), name);
  return context;
}

bool has_transparent_colour(spng_ctx* context, const std::string& name) {
  spng_trns colour;
  const int status = spng_get_trns(context, &colour);
  if (status != SPNG_ECHUNKAVAIL) check(status, name);
  return status == SPNG_OK;
}

std::vector<uint8_t> decode(spng_ctx* context, spng_format format, const std::string& name) {
  size_t size = 0;
  check(spng_decoded_image_size(context, format, &size), name);
  std::vector<uint8_t> values(size);
  check(spng_decode_image(context, values.data(), size, format, SPNG_DECODE_TRNS), name);
  check(spng_decode_chunks(context), name);  // to the end, which a whole file has
  return values;
}

int orientation_of(spng_ctx* context) {
  spng_exif exif;
  return spng_get_exif(context, &exif) == SPNG_OK ? exif_orientation({exif.data, exif.length}) : 1;
}

// Red, green, blue and alpha over white.
std::vector<uint8_t> over_white(const std::vector<uint8_t>& rgba, int64_t channels) {
  std::vector<uint8_t> values;
  values.reserve(rgba.size() / 4 * static_cast<size_t>(channels));
  for (size_t i = 0; i < rgba.size(); i += 4) {
    const unsigned alpha = rgba[i + 3];
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
      values.push_back(static_cast<uint8_t>((rgba[i + c] * alpha + 255 * (255 - alpha) + 127) / 255));
    }
  }
  return values;
}

}  // namespace

Pixels decode_png(std::string_view bytes, const std::string& name, const ImageLimits& limits) {
  check_whole(bytes, name);
  const Context context = open(bytes, name, limits);
  spng_ihdr header;
  check(spng_get_ihdr(context.get(), &header), name);
  check_size(header.width, header.height, name, limits);
  const bool grey = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE || header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
  const bool alpha = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
                     header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA || has_transparent_colour(context.get(), name);
  Pixels pixels{header.width, header.height, grey ? 1 : 3, {}};
  if (alpha || (grey && header.bit_depth == 16)) {  // libspng has no way from these to one channel
    pixels.values = over_white(decode(context.get(), SPNG_FMT_RGBA8, name), pixels.channels);
  } else {
    pixels.values = decode(context.get(), grey ? SPNG_FMT_G8 : SPNG_FMT_RGB8, name);
  }
  return turned(std::move(pixels), orientation_of(context.get()));
}

}  // namespace quell
