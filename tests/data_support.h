// Small token sets for the tests of data.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "data/prepare.h"
#include "data/tokens.h"
#include "temporary.h"

namespace quell::testing {

template <class Integer>
void write_ids(const std::string& path, const std::vector<Integer>& ids) {
  files::write_atomically(path, {reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(Integer)});
}

// In place and without fsync: quick, and seen by who has the file mapped.
inline void overwrite(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Prepares one text and returns the folder of its training part.
inline std::string prepare_text(const TemporaryFolder& folder, const std::string& text, const std::string& tokenizer = "byte",
                                double valid = 0, int64_t shard_bytes = int64_t{1} << 30, int64_t block_bytes = int64_t{64} << 20,
                                const std::string& file = "text.txt") {
  files::write_atomically(folder / file, text);
  prepare_tokens({{folder / file}, folder / "out", tokenizer, valid, shard_bytes, block_bytes}, {});
  return folder / "out/train";
}

inline TokenSet open_set(const std::string& path, TokenType type = TokenType::automatic, int64_t vocabulary = 0) {
  return TokenSet::open(path, type, vocabulary, {});
}

inline std::vector<int64_t> ids_of(const TokenSet& set, int64_t begin, int64_t count) {
  std::vector<int64_t> ids(static_cast<size_t>(count));
  set.read(begin, count, ids.data());
  return ids;
}
inline std::vector<int64_t> ids_of(const TokenSet& set) { return ids_of(set, 0, set.tokens()); }

// Rewrites a side-car by hand.
template <class Change>
void change_side_car(const std::string& folder, const Change& change) {
  const std::string path = folder + "/tokens.json";
  Json json = parse_json(files::read(path), path);
  change(json);
  overwrite(path, json.dump());
}

}  // namespace quell::testing
