#include "data/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace quell {

struct Unpacking::State {
  std::string path;
  files::Mapping file;
  z_stream stream = {};
  size_t at = 0;  // of the file: what is read, or handed to zlib
  int64_t position = 0;
  bool is_packed = false, is_at_end = false;

  std::span<const std::byte> rest() const { return file.bytes().subspan(at); }
  bool at_member() const { return rest().size() >= 2 && rest()[0] == std::byte{0x1f} && rest()[1] == std::byte{0x8b}; }
};

Unpacking::Unpacking(const std::string& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  state_->file = files::Mapping(path);
  state_->is_packed = state_->at_member();
  constexpr int gzip_only = 15 + 16;
  if (state_->is_packed && inflateInit2(&state_->stream, gzip_only) != Z_OK) {
    throw MachineError(path + ": no memory to unpack it");
  }
}

Unpacking::~Unpacking() {
  if (state_->is_packed) inflateEnd(&state_->stream);
}

bool Unpacking::is_packed() const { return state_->is_packed; }
int64_t Unpacking::position() const { return state_->position; }

// Deflate makes at most 258 bytes of two bits.
uint64_t Unpacking::most_left() const { return state_->rest().size() * (state_->is_packed ? 4 * 258 : 1); }

size_t Unpacking::read(uint8_t* out, size_t count) {
  size_t have = 0;
  if (!state_->is_packed) {
    have = std::min(count, state_->rest().size());
    if (have > 0) std::memcpy(out, state_->rest().data(), have);
    state_->at += have;
  }
  while (state_->is_packed && have < count && !state_->is_at_end) have += inflate_some(out + have, count - have);
  state_->position += static_cast<int64_t>(have);
  return have;
}

// One call of zlib, whose counters have 32 bits. A file may hold several members, one after the other (RFC 1952, 2.2); anything
// else behind a member is damage.
size_t Unpacking::inflate_some(uint8_t* out, size_t count) {
  State& s = *state_;
  const size_t input = std::min<size_t>(s.rest().size(), INT_MAX), room = std::min<size_t>(count, INT_MAX);
  s.stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(s.rest().data()));
  s.stream.avail_in = static_cast<uInt>(input);
  s.stream.next_out = out;
  s.stream.avail_out = static_cast<uInt>(room);
  const int status = inflate(&s.stream, Z_NO_FLUSH);
  s.at += input - s.stream.avail_in;
  if (status == Z_MEM_ERROR) throw MachineError(s.path + ": no memory to unpack it");
  if (status == Z_STREAM_END) {
    s.is_at_end = s.rest().empty();
    if (!s.is_at_end && !s.at_member()) {
      throw DataError(cat(s.path, ": byte ", s.at, ": the gzip data end here, and ", s.rest().size(), " other bytes follow"));
    }
    inflateReset(&s.stream);
  } else if (status == Z_BUF_ERROR || (status == Z_OK && s.rest().empty() && s.stream.avail_out > 0)) {
    throw DataError(cat(s.path, ": byte ", s.at, ": the file ends inside its gzip data: it is cut off; copy it again"));
  } else if (status != Z_OK) {
    throw DataError(cat(s.path, ": near byte ", s.at, ": the gzip data are damaged (",
                        s.stream.msg ? s.stream.msg : "no reason given", "); copy it again"));
  }
  return room - s.stream.avail_out;
}

}  // namespace quell
