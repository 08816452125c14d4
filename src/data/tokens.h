// Token data sets. One or more shards of uint16 or uint32 tokens, memory-mapped, with a JSON side-car (written by
// data/prepare.h), or one raw file as nanoGPT writes it (its integer type stated in the run file). Offsets are 64 bits.
// No torch in here; reading is plain memory work, done on the prefetch thread. A set is a value: copies share the
// mapping.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "config/describe.h"
#include "data/part.h"
#include "text/vocabulary.h"

namespace quell {

enum class TokenType { automatic, uint16, uint32, int32 };
template <>
inline constexpr auto choices<TokenType> =
    std::array{Choice{TokenType::automatic, "auto", "from the side-car"}, Choice{TokenType::uint16, "uint16"},
               Choice{TokenType::uint32, "uint32"}, Choice{TokenType::int32, "int32"}};

// When a block is compared with its hash.
enum class BlockCheck { read, none };
template <>
inline constexpr auto choices<BlockCheck> =
    std::array{Choice{BlockCheck::read, "read", "when one of its tokens is first read: data that changed end the run, with the file's name"},
               Choice{BlockCheck::none, "none", "never: for a disk so slow that reading every block once in the first steps is too long"}};

class TokenSet {
 public:
  // `path` is a folder with tokens.json (a split: DIR/train), or a raw .bin file whose `type` is given. Sizes are
  // checked, blocks are compared as `check` says. An id at or above `vocabulary` is found now, before
  // training: file, offset, id (from the side-car's largest id; a raw file is read once with progress, see data/raw.h).
  // vocabulary 0: whatever the data says. Throws DataError.
  static TokenSet open(const std::string& path, TokenType type, int64_t vocabulary, const Progress& progress,
                       BlockCheck check = BlockCheck::read);

  int64_t tokens() const;
  int64_t vocabulary_size() const;       // of the side-car; largest id + 1 for raw files
  const Vocabulary* vocabulary() const;  // null for raw files
  const std::string& path() const;
  std::string digest() const;  // of type, sizes and hashes; what the run folder records
  std::vector<DataPart> parts() const;  // the files; their digests are of their blocks' hashes

  // Copies tokens [begin, begin + count) across shards. Thread-safe. Throws DataError on a block that does not have its hash (each is
  // looked at once in a process, for all copies of the set), and on an id that open() was told cannot be there.
  void read(int64_t begin, int64_t count, int64_t* out) const;
  // Where documents begin is known for prepared sets only.
  bool has_documents() const;
  int64_t document_count() const;  // 0 where it is not known
  // document[i] = number of the document that token begin + i belongs to; all 0 where that is not known.
  void documents(int64_t begin, int64_t count, int64_t* out) const;
  // Target mask of prompt/answer data: whether token begin + i is scored as a target. All true where there is none.
  void scored(int64_t begin, int64_t count, bool* out) const;

 private:
  struct Contents;
  static Contents open_folder(const std::string& path, TokenType type, BlockCheck check);
  static Contents open_raw(const std::string& path, TokenType type, const Progress& progress, BlockCheck check);
  std::shared_ptr<const Contents> contents_;
};

}  // namespace quell
