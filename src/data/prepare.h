// `quell data prepare`: texts to token shards with their side-car. The output folder gets DIR/train and, unless valid
// is 0, DIR/valid (the last part of each text, in file order), each with shard files of at most 1 GiB and tokens.json
// (data/sidecar.h): format version, vocabulary, token type, shards with their token counts and the XXH3 of every 64 MiB
// block, largest id, split, document borders; a target mask for prompt/answer data. It is written beside its place and
// renamed, so it is there whole or not at all; one that exists is an error, and what a killed process left of one is removed.
// Documents follow each other with nothing between them. Texts are never changed, but for a byte order mark with the
// tokenizer char, which is left out with a note; CRLF line ends stay and are counted in a note.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"

namespace quell {

struct PrepareOptions {
  // UTF-8 texts (a document each; "-": standard input), or .jsonl: {"text"} or {"prompt", "answer"} a line.
  std::vector<std::string> files;
  std::string out;
  std::string tokenizer = "byte";           // byte | char (all characters of train and valid)
  double valid = 0.1;                       // part of each text, at its end (of the lines, for .jsonl)
  int64_t shard_bytes = int64_t{1} << 30;   // smaller in tests
  int64_t block_bytes = int64_t{64} << 20;  // smaller in tests
};
struct PrepareSummary {
  int64_t train_tokens = 0, valid_tokens = 0, vocabulary = 0, documents = 0;
};
// Throws UsageError for the options and for an output that exists, DataError for the texts, Interrupted after SIGINT or
// SIGTERM (it installs base/signals.h once it writes), all without leaving anything.
PrepareSummary prepare_tokens(const PrepareOptions& options, const Progress& progress);

}  // namespace quell
