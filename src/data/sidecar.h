// tokens.json, which lies beside prepared token shards and says what they are. It is written last, so a folder that has
// one is whole. It holds no tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "data/blocks.h"
#include "data/tokens.h"
#include "text/vocabulary.h"

namespace quell {

struct SideCar {
  static constexpr const char* file_name = "tokens.json";
  static constexpr int64_t version = 1;

  struct Shard {
    int64_t tokens = 0;
    BlockFile ids;
    std::optional<BlockFile> scored;  // one byte a token, 1 where it is a target; absent where all are
  };
  std::string split;
  Vocabulary vocabulary;
  TokenType type = TokenType::uint16;  // uint16 or uint32
  int64_t largest_id = 0;
  int64_t block_bytes = default_block_bytes;
  std::vector<Shard> shards;
  std::vector<int64_t> documents;  // the first token of each, counted over all shards; begins with 0

  int64_t tokens() const;
};

// The files of one shard, as the side-car in `folder` says that they are.
struct ShardFiles {
  HashedFile ids;
  std::optional<HashedFile> scored;
};
ShardFiles files_of(const std::string& folder, const SideCar& side_car, const SideCar::Shard& shard);

Json to_json(const SideCar& side_car);

// Throws DataError that begins with `name` (the path) and the member that is wrong. Whether the shards are there and
// have their size is not looked at.
SideCar side_car_from_json(const Json& json, const std::string& name);
SideCar read_side_car(const std::string& folder);  // likewise; the file must be there

}  // namespace quell
