// Raw token files, as nanoGPT writes them: integers and nothing else. Their largest id and the hashes of their blocks
// are found by reading them once, and kept beside them as <file>.quell.json for as long as size, time and type stay the
// same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "data/blocks.h"
#include "data/ids.h"

namespace quell {

struct RawScan {
  int64_t largest_id = 0;
  std::vector<std::string> xxh3;  // of every block of default_block_bytes
};

// What stands beside a file, of whatever state of it. Nothing where there is nothing, or it is damaged or of another version.
struct KeptScan {
  Json of;  // the state: equal for a file that is still the same
  TokenType type = TokenType::uint16;
  HashedFile file;
  int64_t largest_id = 0;
};
std::optional<KeptScan> kept_scan(const std::string& path);

inline std::string raw_scan_path(const std::string& path) { return path + ".quell.json"; }

// `bytes` is the whole file at `path`. Throws DataError on a negative id. Where the result cannot be stored (a
// read-only folder) it is only returned: the next run reads the file again.
RawScan scan_raw(const std::string& path, TokenType type, ids::Bytes bytes, const Progress& progress);

}  // namespace quell
