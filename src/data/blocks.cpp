#include "data/blocks.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/signals.h"
#include "base/text.h"

namespace quell {
namespace {

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
Range range_of(const HashedFile& file, int64_t index) {
  const int64_t begin = index * file.block_bytes;
  return {begin, std::min(begin + file.block_bytes, file.bytes)};
}

std::string differs(const HashedFile& file, int64_t index) {
  const Range block = range_of(file, index);
  return cat(file.path, ": block ", index, " (bytes ", block.begin, " to ", block.end - 1, ") does not have the hash that stands in ",
             file.hashes_in, ": the file was changed or damaged; copy or prepare it again");
}

}  // namespace

std::string block_hash(std::span<const std::byte> bytes, int64_t index, int64_t block_bytes) {
  const auto begin = static_cast<size_t>(index * block_bytes);
  const size_t count = std::min(bytes.size() - begin, static_cast<size_t>(block_bytes));
  return xxh3_64_hex({reinterpret_cast<const char*>(bytes.data()) + begin, count});
}

std::string size_problem(const HashedFile& file) {
  if (!files::exists(file.path)) return cat(file.path, ": is missing, and ", file.hashes_in, " lists it: copy or prepare it again");
  return size_problem(file, static_cast<int64_t>(files::size(file.path)));
}

std::string size_problem(const HashedFile& file, int64_t bytes) {
  if (bytes == file.bytes) return "";
  return cat(file.path, ": has ", bytes, " bytes, and ", file.hashes_in, " says ", file.bytes, ": copy or prepare it again");
}

std::string block_problem(const HashedFile& file, int64_t index) {
  const Range block = range_of(file, index);
  const bool is_there = files::exists(file.path) && static_cast<int64_t>(files::size(file.path)) >= block.end;
  if (!is_there) return size_problem(file);
  Xxh3 hash;
  files::read_pieces(file.path, static_cast<uint64_t>(block.begin), static_cast<uint64_t>(block.size()),
                     [&](std::string_view piece) { hash.add(piece); });
  return hash.hex_64() == file.xxh3[static_cast<size_t>(index)] ? "" : differs(file, index);
}

std::string block_problem(const HashedFile& file, int64_t index, const files::Mapping& mapping) {
  const Range block = range_of(file, index);
  Xxh3 hash;
  const auto take = [&](std::string_view piece) {
    if (signals::stop_requested()) throw Stopped();
    hash.add(piece);
  };
  const auto had = mapping.read_pieces_at(file.path, static_cast<uint64_t>(block.begin), static_cast<uint64_t>(block.size()), take);
  if (had && static_cast<int64_t>(*had) < block.size()) return size_problem(file, block.begin + static_cast<int64_t>(*had));
  const std::string found = had ? hash.hex_64() : block_hash(mapping.bytes(), index, file.block_bytes);
  return found == file.xxh3[static_cast<size_t>(index)] ? "" : differs(file, index);
}

BlockWriter::BlockWriter(const std::string& folder, std::string file, int64_t block_bytes)
    : written_{std::move(file), {}}, output_(folder + "/" + written_.file), block_bytes_(static_cast<size_t>(block_bytes)) {}

void BlockWriter::write(const void* bytes, size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const size_t now = std::min(count, block_bytes_ - block_.size());
    block_.append(at, now);
    at += now;
    count -= now;
    if (block_.size() == block_bytes_) flush();
  }
}

BlockFile BlockWriter::finish() {
  if (!block_.empty()) flush();
  output_.commit();
  return std::move(written_);
}

void BlockWriter::flush() {
  written_.xxh3.push_back(xxh3_64_hex(block_));
  output_.write(block_.data(), block_.size());
  block_.clear();
}

}  // namespace quell
