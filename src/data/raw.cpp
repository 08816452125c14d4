#include "data/raw.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace quell {
namespace {

constexpr const char* format = "quell raw scan";
constexpr int64_t version = 1;

// What must be equal for a kept result to hold.
Json identity(const std::string& path, TokenType type, size_t bytes) {
  return {{"format", format},
          {"version", version},
          {"type", name_of(type)},
          {"size", bytes},
          {"modified_ns", files::modified(path)},
          {"block_bytes", default_block_bytes}};
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

std::optional<KeptScan> kept_scan(const std::string& path) {
  const std::string beside = raw_scan_path(path);
  if (!files::exists(beside)) return std::nullopt;
  try {
    const Json found = parse_json(files::read(beside, 64 << 20), beside);
    const Json& of = found.at("of");
    const auto type = choice_named<TokenType>(of.at("type").get<std::string>());
    KeptScan kept{of, type.value_or(TokenType::automatic),
                  {path, of.at("size").get<int64_t>(), of.at("block_bytes").get<int64_t>(), found.at("xxh3").get<std::vector<std::string>>(), beside},
                  found.at("largest_id").get<int64_t>()};
    const bool known = of.at("format") == format && of.at("version") == version && kept.file.block_bytes == default_block_bytes;
    constexpr int64_t most = int64_t{1} << 60;
    const bool whole = kept.type != TokenType::automatic && kept.largest_id >= 0 && kept.file.bytes >= 0 && kept.file.bytes <= most &&
                       static_cast<int64_t>(kept.file.xxh3.size()) == block_count(kept.file.bytes, default_block_bytes);
    return known && whole ? std::optional(kept) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

RawScan scan_raw(const std::string& path, TokenType type, ids::Bytes bytes, const Progress& progress) {
  const auto total = static_cast<int64_t>(bytes.size());
  const int64_t blocks = block_count(total, default_block_bytes);
  const Json of = identity(path, type, bytes.size());
  if (const auto kept = kept_scan(path); kept && kept->of == of) return {kept->largest_id, kept->file.xxh3};
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
