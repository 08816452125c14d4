#include "data/blocks.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace quell {

std::string block_hash(std::span<const std::byte> bytes, int64_t index, int64_t block_bytes) {
  const auto begin = static_cast<size_t>(index * block_bytes);
  const size_t count = std::min(bytes.size() - begin, static_cast<size_t>(block_bytes));
  return xxh3_64_hex({reinterpret_cast<const char*>(bytes.data()) + begin, count});
}

void verify_blocks(const std::string& path, std::span<const std::byte> bytes, const std::vector<std::string>& xxh3,
                   int64_t block_bytes, const std::string& hashes_in, const Progress& progress) {
  const auto total = static_cast<int64_t>(bytes.size());
  for (size_t i = 0; i < xxh3.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const int64_t begin = index * block_bytes, end = std::min(begin + block_bytes, total);
    if (block_hash(bytes, index, block_bytes) != xxh3[i]) {
      throw DataError(cat(path, ": block ", i, " (bytes ", begin, " to ", end - 1, ") does not have the hash that stands in ",
                          hashes_in, ": the file was changed or damaged; copy or prepare it again"));
    }
    progress("verifying " + path, static_cast<uint64_t>(end), static_cast<uint64_t>(total));
  }
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
