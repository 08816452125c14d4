#include "data/sidecar.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "data/ids.h"

namespace quell {
namespace {

constexpr const char* format = "quell tokens";
// Documents and hashes of about 100 TB of text.
constexpr uint64_t side_car_limit = uint64_t{1} << 30;

// The members of one object; each reader throws DataError "PATH: shards[0].tokens: ..." where the member is not as it
// must be.
class Members {
 public:
  Members(const Json& object, std::string name, std::string at = "")
      : object_(object), name_(std::move(name)), at_(std::move(at)) {
    if (!object.is_object()) fail("", "must be an object");
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    const std::string path = at_ + (at_.empty() || key.empty() ? "" : ".") + key;
    throw DataError(cat(name_, ": ", path, path.empty() ? "" : ": ", what));
  }

  bool has(const std::string& key) const { return object_.contains(key); }

  const Json& any(const std::string& key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(key, "is missing");
    return *found;
  }

  // Not above 2^48, so that sums and products with a width cannot overflow.
  int64_t integer(const std::string& key, int64_t low) const {
    const Json& value = any(key);
    const bool fits = value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{1} << 48;
    if (!fits || value.get<int64_t>() < low)
      fail(key, cat("must be a whole number from ", low, " to 2^48, not ", short_dump(value)));
    return value.get<int64_t>();
  }

  std::string text(const std::string& key) const {
    const Json& value = any(key);
    if (!value.is_string()) fail(key, "must be a text, not " + short_dump(value));
    return value.get<std::string>();
  }

  const Json& list(const std::string& key) const {
    const Json& value = any(key);
    if (!value.is_array()) fail(key, "must be a list, not " + short_dump(value));
    return value;
  }

  BlockFile block_file(const std::string& file_key, const std::string& hashes_key) const {
    BlockFile read{text(file_key), {}};
    const bool plain = !read.file.empty() && read.file.find('/') == std::string::npos && read.file[0] != '.';
    if (!plain) fail(file_key, cat("must be the name of a file in this folder, not \"", read.file, "\""));
    for (const Json& hash : list(hashes_key)) {
      const bool hexadecimal = hash.is_string() && hash.get_ref<const std::string&>().size() == 16;
      if (!hexadecimal) fail(hashes_key, "must hold texts of 16 hexadecimal digits, not " + short_dump(hash));
      read.xxh3.push_back(hash.get<std::string>());
    }
    return read;
  }

 private:
  static std::string short_dump(const Json& value) {
    const std::string text = value.dump();
    return text.size() <= 40 ? text : text.substr(0, 40) + "...";
  }

  const Json& object_;
  std::string name_, at_;
};

void check_version(const Members& members) {
  if (!members.has("format") || members.any("format") != format) {
    members.fail("", cat("is not the side-car of prepared tokens (\"format\": \"", format, "\")"));
  }
  const int64_t found = members.integer("version", 1);
  if (found != SideCar::version) {
    members.fail("version", cat(found, " is not known; this program reads version ", SideCar::version,
                                ": prepare the text again, or use the program that wrote it"));
  }
}

SideCar::Shard read_shard(const Members& members, const SideCar& side_car) {
  SideCar::Shard shard;
  shard.tokens = members.integer("tokens", 1);
  const auto check_hashes = [&](const char* key, const BlockFile& file, int64_t bytes) {
    const int64_t wanted = block_count(bytes, side_car.block_bytes);
    const auto found = static_cast<int64_t>(file.xxh3.size());
    if (found != wanted) members.fail(key, cat("has ", found, " hashes where ", bytes, " bytes have ", wanted, " blocks"));
  };
  shard.ids = members.block_file("file", "xxh3");
  check_hashes("xxh3", shard.ids, shard.tokens * ids::width(side_car.type));
  if (members.has("scored_file")) {
    shard.scored = members.block_file("scored_file", "scored_xxh3");
    check_hashes("scored_xxh3", *shard.scored, shard.tokens);
  }
  return shard;
}

std::vector<int64_t> read_documents(const Members& members, int64_t tokens) {
  const Json& list = members.list("documents");
  std::vector<int64_t> begins;
  begins.reserve(list.size());
  for (const Json& begin : list) {
    const int64_t lowest = begins.empty() ? 0 : begins.back() + 1;
    const bool good = begin.is_number_unsigned() && begin.get<uint64_t>() >= static_cast<uint64_t>(lowest) &&
                      begin.get<uint64_t>() < static_cast<uint64_t>(tokens) && (!begins.empty() || begin == 0);
    if (!good)
      members.fail(cat("documents[", begins.size(), "]"), "must begin at 0, ascend, and stay below the number of tokens");
    begins.push_back(begin.get<int64_t>());
  }
  if (begins.empty()) members.fail("documents", "must not be empty");
  return begins;
}

}  // namespace

int64_t SideCar::tokens() const {
  return std::accumulate(shards.begin(), shards.end(), int64_t{0}, [](int64_t sum, const Shard& s) { return sum + s.tokens; });
}

ShardFiles files_of(const std::string& folder, const SideCar& side_car, const SideCar::Shard& shard) {
  const auto listed = [&](const BlockFile& file, int64_t bytes) {
    return HashedFile{folder + "/" + file.file, bytes, side_car.block_bytes, file.xxh3, SideCar::file_name};
  };
  ShardFiles files{listed(shard.ids, shard.tokens * ids::width(side_car.type)), {}};
  if (shard.scored) files.scored = listed(*shard.scored, shard.tokens);
  return files;
}

SideCar read_side_car(const std::string& folder) {
  const std::string name = folder + "/" + SideCar::file_name;
  return side_car_from_json(parse_json(files::read(name, side_car_limit), name), name);
}

Json to_json(const SideCar& side_car) {
  Json shards = Json::array();
  for (const auto& shard : side_car.shards) {
    Json object = {{"file", shard.ids.file}, {"tokens", shard.tokens}, {"xxh3", shard.ids.xxh3}};
    if (shard.scored) {
      object["scored_file"] = shard.scored->file;
      object["scored_xxh3"] = shard.scored->xxh3;
    }
    shards.push_back(std::move(object));
  }
  return {{"format", format},
          {"version", SideCar::version},
          {"split", side_car.split},
          {"vocabulary", side_car.vocabulary.to_json()},
          {"type", name_of(side_car.type)},
          {"tokens", side_car.tokens()},
          {"largest_id", side_car.largest_id},
          {"block_bytes", side_car.block_bytes},
          {"shards", std::move(shards)},
          {"documents", side_car.documents}};
}

SideCar side_car_from_json(const Json& json, const std::string& name) {
  const Members members(json, name);
  check_version(members);
  SideCar side_car;
  side_car.split = members.text("split");
  side_car.vocabulary = Vocabulary::from_json(members.any("vocabulary"), name);
  const auto type = choice_named<TokenType>(members.text("type"));
  if (type != TokenType::uint16 && type != TokenType::uint32) members.fail("type", "must be \"uint16\" or \"uint32\"");
  side_car.type = *type;
  side_car.largest_id = members.integer("largest_id", 0);
  if (side_car.largest_id >= side_car.vocabulary.size()) {
    members.fail("largest_id", cat(side_car.largest_id, " is not in the vocabulary of ", side_car.vocabulary.size()));
  }
  side_car.block_bytes = members.integer("block_bytes", 1);
  const Json& shards = members.list("shards");
  for (size_t i = 0; i < shards.size(); ++i) {
    side_car.shards.push_back(read_shard(Members(shards[i], name, cat("shards[", i, "]")), side_car));
  }
  const int64_t tokens = members.integer("tokens", 1);
  if (tokens != side_car.tokens()) members.fail("tokens", cat(tokens, " is not the sum of the shards, ", side_car.tokens()));
  side_car.documents = read_documents(members, tokens);
  return side_car;
}

}  // namespace quell
