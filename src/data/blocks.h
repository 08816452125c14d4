// Files in hashed blocks: written front to back with one XXH3 a block, and checked against those hashes later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/progress.h"

namespace quell {

constexpr int64_t default_block_bytes = int64_t{64} << 20;

// A file beside a side-car: its plain name, and the XXH3 of every block of it (the last one may be short).
struct BlockFile {
  std::string file;
  std::vector<std::string> xxh3;
};

inline int64_t block_count(int64_t bytes, int64_t block_bytes) { return (bytes + block_bytes - 1) / block_bytes; }

// The hash of block `index` of `bytes`.
std::string block_hash(std::span<const std::byte> bytes, int64_t index, int64_t block_bytes);

// Throws DataError that names the file, the first block that differs from its hash, and where the hashes stand.
void verify_blocks(const std::string& path, std::span<const std::byte> bytes, const std::vector<std::string>& xxh3,
                   int64_t block_bytes, const std::string& hashes_in, const Progress& progress);

// Holds at most one block in memory.
class BlockWriter {
 public:
  BlockWriter(const std::string& folder, std::string file, int64_t block_bytes);
  void write(const void* bytes, size_t count);
  BlockFile finish();  // the file is on the disk after this

 private:
  void flush();
  BlockFile written_;
  files::Output output_;
  std::string block_;
  size_t block_bytes_;
};

}  // namespace quell
