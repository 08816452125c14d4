#include "data/raw.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "data/blocks.h"

namespace quell {
namespace {

// What must be equal for a kept result to hold.
Json identity(const std::string& path, TokenType type, size_t bytes) {
  return {{"format", "quell raw scan"},
          {"version", 1},
          {"type", name_of(type)},
          {"size", bytes},
          {"modified_ns", files::modified(path)},
          {"block_bytes", default_block_bytes}};
}

// Nothing where there is no kept result, or it is for another state of the file, or it is damaged: then the file is
// read again.
std::optional<RawScan> kept(const std::string& path, const Json& wanted, int64_t blocks) {
  const std::string beside = raw_scan_path(path);
  if (!files::exists(beside)) return std::nullopt;
  try {
    const Json found = parse_json(files::read(beside, 64 << 20), beside);
    if (found.at("of") != wanted) return std::nullopt;
    RawScan scan{found.at("largest_id").get<int64_t>(), found.at("xxh3").get<std::vector<std::string>>()};
    const bool whole = scan.largest_id >= 0 && static_cast<int64_t>(scan.xxh3.size()) == blocks;
    return whole ? std::optional(scan) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

void keep(const std::string& path, const Json& of, const RawScan& scan) {
  const Json json = {{"of", of}, {"largest_id", scan.largest_id}, {"xxh3", scan.xxh3}};
  try {
    files::write_atomically(raw_scan_path(path), json.dump(1) + "\n");
  } catch (const MachineError&) {
    // Only time is lost: data are often on a disk that may not be written.
  }
}

}  // namespace

RawScan scan_raw(const std::string& path, TokenType type, ids::Bytes bytes, const Progress& progress) {
  const auto total = static_cast<int64_t>(bytes.size());
  const int64_t blocks = block_count(total, default_block_bytes);
  const Json of = identity(path, type, bytes.size());
  if (auto scan = kept(path, of, blocks)) return *scan;
  RawScan scan;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t begin = block * default_block_bytes, end = std::min(begin + default_block_bytes, total);
    const auto part = bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    const int64_t largest = ids::largest(type, part);
    if (largest < 0) {
      const int64_t index = ids::first_outside(type, part, INT64_MAX);
      const int64_t token = begin / ids::width(type) + index;
      throw DataError(cat(path, ": token ", token, " (byte ", token * ids::width(type), ") is ", ids::at(type, part, index),
                          ", and ids are not negative: the file is damaged, or not of ", name_of(type)));
    }
    scan.largest_id = std::max(scan.largest_id, largest);
    scan.xxh3.push_back(block_hash(bytes, block, default_block_bytes));
    progress("reading " + path + " once", static_cast<uint64_t>(end), static_cast<uint64_t>(total));
  }
  keep(path, of, scan);
  return scan;
}

}  // namespace quell
