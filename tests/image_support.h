// Small image files and sets for the tests of data: encoders for what real files hold, and IDX files by hand.
#pragma once

#include <spng.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>
// clang-format off
#include <jpeglib.h>  // needs <cstdio> before it
// clang-format on

#include "base/files.h"
#include "data/image_set.h"
#include "data_support.h"

namespace quell::testing {

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// An IDX file of unsigned bytes.
inline std::string idx(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string out{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) out += big_endian(size);
  return out + values;
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(compressBound(static_cast<uLong>(bytes.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Byte i is a function of i that repeats late.
inline std::string varied(size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += static_cast<char>(i * 37 + i / 251);
  return out;
}

// Writes PREFIX-images-idx3-ubyte and PREFIX-labels-idx1-ubyte; `values` may be empty for varied ones.
inline void write_idx_pair(const std::string& prefix, uint32_t height, uint32_t width, const std::string& labels,
                           std::string values = "") {
  const auto count = static_cast<uint32_t>(labels.size());
  if (values.empty()) values = varied(size_t{count} * height * width);
  overwrite(prefix + "-images-idx3-ubyte", idx({count, height, width}, values));
  overwrite(prefix + "-labels-idx1-ubyte", idx({count}, labels));
}

// Channels by colour type; 16-bit samples are in the byte order of this machine.
inline std::string png(uint32_t width, uint32_t height, int colour_type, int bits, const std::vector<uint8_t>& raw,
                       const std::function<void(spng_ctx*)>& more = {}) {
  spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_ihdr header{width, height, static_cast<uint8_t>(bits), static_cast<uint8_t>(colour_type), 0, 0, 0};
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  int status = spng_set_ihdr(context, &header);
  if (more) more(context);
  if (status == 0) status = spng_encode_image(context, raw.data(), raw.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  size_t size = 0;
  void* bytes = status == 0 ? spng_get_png_buffer(context, &size, &status) : nullptr;
  std::string out(static_cast<const char*>(bytes), bytes ? size : 0);
  std::free(bytes);
  spng_ctx_free(context);
  if (status != 0) throw std::runtime_error(spng_strerror(status));
  return out;
}

inline std::string png_grey(uint32_t width, uint32_t height, const std::vector<uint8_t>& grey) {
  return png(width, height, SPNG_COLOR_TYPE_GRAYSCALE, 8, grey);
}
inline std::string png_rgb(uint32_t width, uint32_t height, const std::vector<uint8_t>& rgb) {
  return png(width, height, SPNG_COLOR_TYPE_TRUECOLOR, 8, rgb);
}

struct JpegOptions {
  J_COLOR_SPACE in = JCS_RGB, stored = JCS_YCbCr;
  bool progressive = false;
  std::string exif;  // contents of the APP1 marker
  int chroma = 1;    // 2: colour is stored at half the width and height
  std::function<void(jpeg_compress_struct&)> more = {};
};

// At quality 100, where every quantiser is 1. An error of the library ends the test program, as it does by default.
inline std::string jpeg(uint32_t width, uint32_t height, int channels, std::vector<uint8_t> values, const JpegOptions& options) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = width;
  info.image_height = height;
  info.input_components = channels;
  info.in_color_space = options.in;
  jpeg_set_defaults(&info);
  jpeg_set_colorspace(&info, options.stored);
  jpeg_set_quality(&info, 100, TRUE);
  for (int c = 0; c < info.num_components; ++c) {
    const int factor = c == 0 ? options.chroma : 1;
    info.comp_info[c].h_samp_factor = info.comp_info[c].v_samp_factor = factor;
  }
  if (options.progressive) jpeg_simple_progression(&info);
  if (options.more) options.more(info);
  jpeg_start_compress(&info, TRUE);
  if (!options.exif.empty()) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(options.exif.data()),
                      static_cast<unsigned>(options.exif.size()));
  }
  for (uint32_t y = 0; y < height; ++y) {
    JSAMPROW row = values.data() + size_t{y} * width * static_cast<size_t>(channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  const std::string out(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&info);
  std::free(bytes);
  return out;
}

// A file with the folders above it.
inline void write_file(const std::string& path, const std::string& bytes) {
  files::make_folders(path.substr(0, path.rfind('/')));
  overwrite(path, bytes);
}

inline ImageSet open_images(const std::string& path) { return ImageSet::open(path, {}); }

template <class Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "(accepted)";
}

}  // namespace quell::testing
