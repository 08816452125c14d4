#include "data/tokens.h"

#include <algorithm>
#include <atomic>
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

struct MappedFile {
  HashedFile file;
  files::Mapping mapping;
  int64_t modified = 0;
  std::unique_ptr<std::atomic<bool>[]> sound;  // by block: whether it was looked at; null where none is
};

struct MappedShard {
  int64_t begin = 0, tokens = 0;
  MappedFile ids;
  std::optional<MappedFile> scored;
};

MappedFile map_file(HashedFile file, BlockCheck check) {
  if (const std::string problem = size_problem(file); !problem.empty()) throw DataError(problem);
  MappedFile mapped{{}, files::Mapping(file.path), files::modified(file.path), {}};
  const auto bytes = static_cast<int64_t>(mapped.mapping.bytes().size());  // it may have become another one since
  if (const std::string problem = size_problem(file, bytes); !problem.empty()) throw DataError(problem);
  if (check == BlockCheck::read) mapped.sound = std::make_unique<std::atomic<bool>[]>(static_cast<size_t>(block_count(file.bytes, file.block_bytes)));
  mapped.file = std::move(file);
  return mapped;
}

// Bytes [begin, end) are about to be read. A file that was cut off is found by its size each time, since to touch what is no longer there
// ends the process (SIGBUS); what remains is one that is cut off in the moment between this look and the reading. Two threads may look at
// a block at once, which costs time and nothing else.
void check_blocks(const MappedFile& mapped, int64_t begin, int64_t end) {
  const HashedFile& file = mapped.file;
  const std::optional<uint64_t> bytes = mapped.mapping.size_at(file.path);
  if (bytes && static_cast<int64_t>(*bytes) < end) throw DataError(size_problem(file, static_cast<int64_t>(*bytes)));
  if (mapped.sound == nullptr) return;
  for (int64_t block = begin / file.block_bytes; block * file.block_bytes < end; ++block) {
    std::atomic<bool>& sound = mapped.sound[static_cast<size_t>(block)];
    if (sound.load(std::memory_order_relaxed)) continue;
    const std::string problem = block_problem(file, block, mapped.mapping);
    if (!problem.empty()) throw DataError(problem);
    sound.store(true, std::memory_order_relaxed);
  }
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
  int64_t tokens = 0, largest_id = 0;
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
      throw DataError(cat(shard.ids.file.path, ": token ", index, " (byte ", index * ids::width(type), ") is id ",
                          ids::at(type, shard.ids.mapping.bytes(), index), ", ", fix));
    }
    throw DataError(cat(path, ": largest_id is ", largest_id, " in tokens.json, but no token has that id: prepare it again"));
  }
};

TokenSet::Contents TokenSet::open_folder(const std::string& path, TokenType type, BlockCheck check) {
  if (!files::exists(path + "/" + SideCar::file_name)) throw DataError(cat(path, ": has no ", SideCar::file_name, hint_for_folder(path)));
  SideCar side_car = read_side_car(path);
  if (type != TokenType::automatic && type != side_car.type) {
    throw DataError(cat(path, ": holds ", name_of(side_car.type), " tokens, and data.type says ", name_of(type),
                        ": leave data.type out for prepared data"));
  }
  Contents contents;
  contents.path = path;
  contents.hashes_in = SideCar::file_name;
  contents.type = side_car.type;
  contents.largest_id = side_car.largest_id;
  for (const auto& listed : side_car.shards) {
    ShardFiles files = files_of(path, side_car, listed);
    MappedShard shard{contents.tokens, listed.tokens, map_file(std::move(files.ids), check), {}};
    if (files.scored) shard.scored = map_file(std::move(*files.scored), check);
    contents.tokens += listed.tokens;
    contents.shards.push_back(std::move(shard));
  }
  contents.documents = std::move(side_car.documents);
  contents.vocabulary = std::move(side_car.vocabulary);
  return contents;
}

TokenSet::Contents TokenSet::open_raw(const std::string& path, TokenType type, const Progress& progress, BlockCheck check) {
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
  const auto bytes = static_cast<int64_t>(files::size(path));
  if (bytes == 0 || bytes % ids::width(type) != 0) {
    throw DataError(cat(path, ": has ", bytes, " bytes, which is no whole number of ", name_of(type), " tokens"));
  }
  MappedFile file = map_file({path, bytes, default_block_bytes, {}, contents.hashes_in}, check);
  RawScan scan = scan_raw(path, type, file.mapping.bytes(), progress);
  file.file.xxh3 = std::move(scan.xxh3);
  contents.largest_id = scan.largest_id;
  contents.tokens = bytes / ids::width(type);
  contents.shards.push_back({0, contents.tokens, std::move(file), {}});
  return contents;
}

TokenSet TokenSet::open(const std::string& path, TokenType type, int64_t vocabulary, const Progress& progress, BlockCheck check) {
  if (!files::exists(path))
    throw DataError(path + ": does not exist; quell data prepare FILE --out DIR makes DIR/train and DIR/valid");
  TokenSet set;
  set.contents_ = std::make_shared<Contents>(files::is_folder(path) ? open_folder(path, type, check) : open_raw(path, type, progress, check));
  if (vocabulary > 0 && set.contents_->largest_id >= vocabulary) {
    set.contents_->fail_at_least(vocabulary, cat("and model.vocabulary ", vocabulary, " allows 0 to ", vocabulary - 1,
                                                 ": raise it to ", set.contents_->largest_id + 1, ", or check data.type"));
  }
  return set;
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
    text += cat(shard.tokens, " ", join(shard.ids.file.xxh3, " "), " / ", shard.scored ? join(shard.scored->file.xxh3, " ") : "", "\n");
  }
  for (int64_t begin : contents_->documents) text += cat(begin, " ");
  return xxh3_128_hex(text);
}

std::vector<DataPart> TokenSet::parts() const {
  std::vector<DataPart> parts;
  const auto add = [&](const MappedFile& mapped) {
    const HashedFile& file = mapped.file;
    parts.push_back({.name = file.path.substr(file.path.rfind('/') + 1), .bytes = file.bytes, .modified = mapped.modified,
                     .digest = xxh3_128_hex(join(file.xxh3, " "))});
  };
  for (const auto& shard : contents_->shards) {
    add(shard.ids);
    if (shard.scored) add(*shard.scored);
  }
  return parts;
}

void TokenSet::read(int64_t begin, int64_t count, int64_t* out) const {
  const Contents& all = *contents_;
  all.for_each_part(begin, begin + count, [&](const MappedShard& shard, int64_t from, int64_t to) {
    check_blocks(shard.ids, from * ids::width(all.type), to * ids::width(all.type));
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
    if (shard.scored) check_blocks(*shard.scored, from, to);
    for (int64_t i = from; i < to; ++i) {
      *out++ = !shard.scored || shard.scored->mapping.bytes()[static_cast<size_t>(i)] != std::byte{0};
    }
  });
}

}  // namespace quell
