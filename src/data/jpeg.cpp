// JPEG files by libjpeg-turbo. The library reports errors through a function that must not return: it jumps back into
// guarded(), over frames of the library and a lambda that own nothing. No exception passes through the library.
// clang-format off
#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>  // needs <cstdio> before it
#include <jerror.h>
// clang-format on

#include "base/error.h"
#include "base/text.h"
#include "data/image_codec.h"

namespace quell {
namespace {

constexpr int exif_marker = JPEG_APP0 + 1;
// A file of some kilobytes may ask for a thousand passes over a large picture; encoders make about ten.
constexpr int most_scans = 200;

struct Failure : jpeg_error_mgr {
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void fail(j_common_ptr info) {
  auto* failure = static_cast<Failure*>(info->err);
  failure->format_message(info, failure->text);
  std::longjmp(failure->jump, 1);
}

// A warning means that pixels are made up, but for these three: bytes too many between two markers, and two notes on versions.
void warn(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR) fail(info);
}

void print_nothing(j_common_ptr) {}

// Which components the scans had so far.
struct Watch : jpeg_progress_mgr {
  unsigned seen = 0;
};

// Called by the library at least once in each scan.
void watch_scans(j_common_ptr common) {
  auto* info = reinterpret_cast<j_decompress_ptr>(common);
  for (int i = 0; i < info->comps_in_scan; ++i)
    static_cast<Watch*>(info->progress)->seen |= 1u << info->cur_comp_info[i]->component_index;
  if (info->input_scan_number <= most_scans) return;
  auto* failure = static_cast<Failure*>(info->err);
  std::snprintf(failure->text, sizeof failure->text, "more than %d scans", most_scans);
  std::longjmp(failure->jump, 1);
}

class Decoder {
 public:
  explicit Decoder(const std::string& name) : name_(name) {
    info_.err = jpeg_std_error(&failure_);
    failure_.error_exit = fail;
    failure_.emit_message = warn;
    failure_.output_message = print_nothing;
    watch_.progress_monitor = watch_scans;
  }
  ~Decoder() { jpeg_destroy_decompress(&info_); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Not in the constructor: where that throws, no destructor runs.
  void open(std::string_view bytes, const ImageLimits& limits) {
    guarded([&] {
      jpeg_create_decompress(&info_);
      info_.mem->max_memory_to_use = static_cast<long>(limits.memory);
      info_.progress = &watch_;
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
      jpeg_save_markers(&info_, exif_marker, 0xffff);
      jpeg_read_header(&info_, TRUE);
    });
    check_size(info_.image_width, info_.image_height, name_, limits);
  }

  // In the colour space that is asked for.
  Pixels read(J_COLOR_SPACE space, int64_t channels) {
    Pixels pixels{info_.image_width, info_.image_height, channels, {}};
    pixels.values.resize(static_cast<size_t>(pixels.width * pixels.height * channels));
    uint8_t* values = pixels.values.data();
    const auto row_bytes = static_cast<size_t>(pixels.width * channels);
    guarded([&] {
      info_.out_color_space = space;
      jpeg_start_decompress(&info_);
      while (info_.output_scanline < info_.output_height) {
        JSAMPROW row = values + info_.output_scanline * row_bytes;
        jpeg_read_scanlines(&info_, &row, 1);
      }
      jpeg_finish_decompress(&info_);
    });
    // The library would leave such a component grey.
    if (watch_.seen != (1u << info_.num_components) - 1) {
      throw DataError(name_ + ": is damaged or cut off: a component of the picture has no scan");
    }
    return pixels;
  }

  J_COLOR_SPACE space() const { return info_.jpeg_color_space; }
  int components() const { return info_.num_components; }
  // Adobe's programs store ink upside down, and say so by their marker.
  bool is_inverted() const { return info_.saw_Adobe_marker != FALSE; }
  int orientation() const {
    for (auto* marker = info_.marker_list; marker; marker = marker->next) {
      const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
      constexpr std::string_view begin("Exif\0\0", 6);
      if (marker->marker == exif_marker && data.starts_with(begin)) return exif_orientation(data.substr(begin.size()));
    }
    return 1;
  }

 private:
  template <class Work>
  void guarded(const Work& work) {
    if (setjmp(failure_.jump) != 0) throw DataError(cat(name_, ": is damaged or cut off: ", failure_.text));
    work();
  }

  const std::string& name_;
  Failure failure_;
  jpeg_decompress_struct info_ = {};
  Watch watch_ = {};
};

// Light is what no ink takes away.
Pixels rgb_of(const Pixels& cmyk, bool is_inverted) {
  Pixels pixels{cmyk.width, cmyk.height, 3, {}};
  pixels.values.reserve(cmyk.values.size() / 4 * 3);
  const auto light = [&](uint8_t value) { return static_cast<unsigned>(is_inverted ? value : 255 - value); };
  for (size_t i = 0; i < cmyk.values.size(); i += 4) {
    const unsigned black = light(cmyk.values[i + 3]);
    for (size_t c = 0; c < 3; ++c) pixels.values.push_back(static_cast<uint8_t>((light(cmyk.values[i + c]) * black + 127) / 255));
  }
  return pixels;
}

}  // namespace

Pixels decode_jpeg(std::string_view bytes, const std::string& name, const ImageLimits& limits) {
  Decoder decoder(name);
  decoder.open(bytes, limits);
  const int orientation = decoder.orientation();
  const J_COLOR_SPACE space = decoder.space();
  if (space == JCS_GRAYSCALE) return turned(decoder.read(JCS_GRAYSCALE, 1), orientation);
  if (space == JCS_YCbCr || space == JCS_RGB) return turned(decoder.read(JCS_RGB, 3), orientation);
  if (space == JCS_CMYK || space == JCS_YCCK) {
    return turned(rgb_of(decoder.read(JCS_CMYK, 4), decoder.is_inverted()), orientation);
  }
  throw DataError(cat(name, ": has ", decoder.components(), " components; 1, 3 or 4 can be decoded"));
}

}  // namespace quell
