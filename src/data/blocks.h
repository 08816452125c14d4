// Files in hashed blocks: written front to back with one XXH3 a block, and checked against those hashes later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace quell {

constexpr int64_t default_block_bytes = int64_t{64} << 20;

// A file beside a side-car: its plain name, and the XXH3 of every block of it (the last one may be short).
struct BlockFile {
  std::string file;
  std::vector<std::string> xxh3;
};

inline int64_t block_count(int64_t bytes, int64_t block_bytes) { return (bytes + block_bytes - 1) / block_bytes; }

// A file as it is meant to be.
struct HashedFile {
  std::string path;
  int64_t bytes = 0, block_bytes = default_block_bytes;
  std::vector<std::string> xxh3;  // of every block
  std::string hashes_in;          // where all of this stands, for messages
};

// The hash of block `index` of `bytes`.
std::string block_hash(std::span<const std::byte> bytes, int64_t index, int64_t block_bytes);

// These say what is wrong, and how to mend it, in words that begin with the file; "" where nothing is.
// That the file is not there, or of another size.
std::string size_problem(const HashedFile& file);
std::string size_problem(const HashedFile& file, int64_t bytes);  // where it has so many
// That a block does not have its hash. The file is read, not mapped: one that is cut off meanwhile is a problem that is told, and a disk
// that cannot deliver a MachineError, where a mapping would end the process.
std::string block_problem(const HashedFile& file, int64_t index);
// The same of a file that was mapped: if another has its name now, which says nothing of it, the mapping itself is looked at. Throws Stopped
// where a stop is asked for before a whole block has come from a slow disk.
std::string block_problem(const HashedFile& file, int64_t index, const files::Mapping& mapping);

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
