#include "data/tokens.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/ids.h"
#include "data/raw.h"
#include "data/sidecar.h"

namespace quell {
namespace {

// Documents and hashes of about 100 TB of text.
constexpr uint64_t side_car_limit = uint64_t{1} << 30;

struct MappedFile {
  std::string path;
  std::vector<std::string> xxh3;
  files::Mapping mapping;
};

struct MappedShard {
  int64_t begin = 0, tokens = 0;
  MappedFile ids;
  std::optional<MappedFile> scored;
};

MappedFile map_listed(const std::string& folder, const BlockFile& listed, int64_t tokens, int64_t width) {
  MappedFile file{folder + "/" + listed.file, listed.xxh3, {}};
  if (!files::exists(file.path)) throw DataError(file.path + ": is missing, and tokens.json lists it: copy or prepare it again");
  const auto bytes = static_cast<int64_t>(files::size(file.path));
  if (bytes != tokens * width) {
    throw DataError(cat(file.path, ": has ", bytes, " bytes, and tokens.json says ", tokens, " tokens of ", width,
                        width == 1 ? " byte: " : " bytes: ", "copy or prepare it again"));
  }
  file.mapping = files::Mapping(file.path);
  return file;
}

std::string hint_for_folder(const std::string& path) {
  for (const char* split : {"/train", "/valid"}) {
    if (files::exists(path + split + "/" + SideCar::file_name)) return cat("; did you mean ", path, split, "?");
  }
  return "; quell data prepare makes such a folder";
}

}  // namespace

struct TokenSet::Contents {
  std::string path, hashes_in;
  TokenType type = TokenType::uint16;
  int64_t tokens = 0, largest_id = 0, block_bytes = default_block_bytes;
  std::vector<MappedShard> shards;
  std::vector<int64_t> documents;  // first tokens, ascending; empty where not known
  std::optional<Vocabulary> vocabulary;

  // Calls work(shard, begin, end) for the parts of [begin, end) that lie in one shard, numbered from the shard's first
  // token.
  template <class Work>
  void for_each_part(int64_t begin, int64_t end, const Work& work) const {
    require(begin >= 0 && begin <= end && end <= tokens, "TokenSet: tokens outside the data");
    auto shard =
        std::upper_bound(shards.begin(), shards.end(), begin, [](int64_t t, const MappedShard& s) { return t < s.begin; });
    for (--shard; begin < end; ++shard) {
      const int64_t stop = std::min(end, shard->begin + shard->tokens);
      work(*shard, begin - shard->begin, stop - shard->begin);
      begin = stop;
    }
  }

  // The first id at or above `bound`: reads everything, and is called only where one is known to be there.
  [[noreturn]] void fail_at_least(int64_t bound, const std::string& fix) const {
    for (const auto& shard : shards) {
      const int64_t index = ids::first_outside(type, shard.ids.mapping.bytes(), bound);
      if (index < 0) continue;
      throw DataError(cat(shard.ids.path, ": token ", index, " (byte ", index * ids::width(type), ") is id ",
                          ids::at(type, shard.ids.mapping.bytes(), index), ", ", fix));
    }
    throw DataError(cat(path, ": largest_id is ", largest_id, " in tokens.json, but no token has that id: prepare it again"));
  }
};

TokenSet::Contents TokenSet::open_folder(const std::string& path, TokenType type) {
  const std::string name = path + "/" + SideCar::file_name;
  if (!files::exists(name)) throw DataError(cat(path, ": has no ", SideCar::file_name, hint_for_folder(path)));
  SideCar side_car = side_car_from_json(parse_json(files::read(name, side_car_limit), name), name);
  if (type != TokenType::automatic && type != side_car.type) {
    throw DataError(cat(path, ": holds ", name_of(side_car.type), " tokens, and data.type says ", name_of(type),
                        ": leave data.type out for prepared data"));
  }
  Contents contents;
  contents.path = path;
  contents.hashes_in = SideCar::file_name;
  contents.type = side_car.type;
  contents.largest_id = side_car.largest_id;
  contents.block_bytes = side_car.block_bytes;
  for (const auto& listed : side_car.shards) {
    MappedShard shard{contents.tokens, listed.tokens, map_listed(path, listed.ids, listed.tokens, ids::width(side_car.type)), {}};
    if (listed.scored) shard.scored = map_listed(path, *listed.scored, listed.tokens, 1);
    contents.tokens += listed.tokens;
    contents.shards.push_back(std::move(shard));
  }
  contents.documents = std::move(side_car.documents);
  contents.vocabulary = std::move(side_car.vocabulary);
  return contents;
}

TokenSet::Contents TokenSet::open_raw(const std::string& path, TokenType type, const Progress& progress) {
  if (!path.ends_with(".bin")) {
    throw DataError(path + ": is not token data: give a folder that quell data prepare made, or a raw .bin file of tokens");
  }
  if (type == TokenType::automatic) {
    throw DataError(path + ": the integer type of a raw file cannot be seen: set data.type to uint16, uint32 or int32");
  }
  Contents contents;
  contents.path = path;
  contents.hashes_in = raw_scan_path(path);
  contents.type = type;
  MappedFile file{path, {}, files::Mapping(path)};
  const auto bytes = static_cast<int64_t>(file.mapping.bytes().size());
  if (bytes == 0 || bytes % ids::width(type) != 0) {
    throw DataError(cat(path, ": has ", bytes, " bytes, which is no whole number of ", name_of(type), " tokens"));
  }
  RawScan scan = scan_raw(path, type, file.mapping.bytes(), progress);
  file.xxh3 = std::move(scan.xxh3);
  contents.largest_id = scan.largest_id;
  contents.tokens = bytes / ids::width(type);
  contents.shards.push_back({0, contents.tokens, std::move(file), {}});
  return contents;
}

TokenSet TokenSet::open(const std::string& path, TokenType type, int64_t vocabulary, const Progress& progress) {
  if (!files::exists(path))
    throw DataError(path + ": does not exist; quell data prepare FILE --out DIR makes DIR/train and DIR/valid");
  TokenSet set;
  set.contents_ = std::make_shared<Contents>(files::is_folder(path) ? open_folder(path, type) : open_raw(path, type, progress));
  if (vocabulary > 0 && set.contents_->largest_id >= vocabulary) {
    set.contents_->fail_at_least(vocabulary, cat("and model.vocabulary ", vocabulary, " allows 0 to ", vocabulary - 1,
                                                 ": raise it to ", set.contents_->largest_id + 1, ", or check data.type"));
  }
  return set;
}

void TokenSet::verify(const Progress& progress) const {
  const auto check = [&](const MappedFile& file) {
    verify_blocks(file.path, file.mapping.bytes(), file.xxh3, contents_->block_bytes, contents_->hashes_in, progress);
  };
  for (const auto& shard : contents_->shards) {
    check(shard.ids);
    if (shard.scored) check(*shard.scored);
  }
}

int64_t TokenSet::tokens() const { return contents_->tokens; }
int64_t TokenSet::vocabulary_size() const {
  return contents_->vocabulary ? contents_->vocabulary->size() : contents_->largest_id + 1;
}
const Vocabulary* TokenSet::vocabulary() const { return contents_->vocabulary ? &*contents_->vocabulary : nullptr; }
const std::string& TokenSet::path() const { return contents_->path; }

std::string TokenSet::digest() const {
  std::string text = cat(name_of(contents_->type), "\n");
  for (const auto& shard : contents_->shards) {
    text += cat(shard.tokens, " ", join(shard.ids.xxh3, " "), " / ", shard.scored ? join(shard.scored->xxh3, " ") : "", "\n");
  }
  for (int64_t begin : contents_->documents) text += cat(begin, " ");
  return xxh3_128_hex(text);
}

void TokenSet::read(int64_t begin, int64_t count, int64_t* out) const {
  const Contents& all = *contents_;
  all.for_each_part(begin, begin + count, [&](const MappedShard& shard, int64_t from, int64_t to) {
    const int64_t largest = ids::copy(all.type, shard.ids.mapping.bytes(), from, to - from, out);
    // Costs nothing beside the copy, and a file that was damaged after it was prepared must not index outside an
    // embedding.
    if (largest < 0 || largest > all.largest_id) {
      all.fail_at_least(all.largest_id + 1, cat("above the largest one, ", all.largest_id, ", that ", all.hashes_in,
                                                " states: the file was changed or damaged; copy or prepare it again"));
    }
    out += to - from;
  });
}

bool TokenSet::has_documents() const { return !contents_->documents.empty(); }
int64_t TokenSet::document_count() const { return static_cast<int64_t>(contents_->documents.size()); }

void TokenSet::documents(int64_t begin, int64_t count, int64_t* out) const {
  require(begin >= 0 && count >= 0 && begin + count <= contents_->tokens, "TokenSet: tokens outside the data");
  const auto& begins = contents_->documents;
  auto next = std::upper_bound(begins.begin(), begins.end(), begin);
  for (int64_t i = 0; i < count; ++i) {
    while (next != begins.end() && *next <= begin + i) ++next;
    out[i] = begins.empty() ? 0 : next - begins.begin() - 1;
  }
}

void TokenSet::scored(int64_t begin, int64_t count, bool* out) const {
  contents_->for_each_part(begin, begin + count, [&](const MappedShard& shard, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      *out++ = !shard.scored || shard.scored->mapping.bytes()[static_cast<size_t>(i)] != std::byte{0};
    }
  });
}

}  // namespace quell
