#include "data/prepare.h"

#include <algorithm>
#include <list>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/signals.h"
#include "base/text.h"
#include "data/documents.h"
#include "data/split_writer.h"
#include "data/staged_folder.h"
#include "text/vocabulary.h"

namespace quell {
namespace {

// Both passes over all files as one piece of work, reported every few megabytes.
class Meter {
 public:
  Meter(const Progress& progress, uint64_t total) : progress_(progress), total_(total) {}
  void advance(const std::string& what, uint64_t bytes) {
    done_ = std::min(done_ + bytes, total_);
    if (done_ - reported_ < uint64_t{4} << 20) return;
    reported_ = done_;
    progress_(what, done_, total_);
  }
  void finish(const std::string& what) const { progress_(what, total_, total_); }

 private:
  const Progress& progress_;
  uint64_t total_, done_ = 0, reported_ = 0;
};

std::string checked_out(const PrepareOptions& options) {
  if (options.files.empty()) throw UsageError("quell data prepare: needs at least one FILE");
  if (options.tokenizer != "byte" && options.tokenizer != "char") {
    throw UsageError(cat("--tokenizer: \"", options.tokenizer, "\" is not known; byte and char are"));
  }
  if (!(options.valid >= 0 && options.valid < 1)) {
    throw UsageError(cat("--valid: ", options.valid, " is not in [0, 1): it is the part of each text that is held back"));
  }
  std::string out = options.out;
  while (out.size() > 1 && out.ends_with('/')) out.pop_back();
  if (out.empty()) throw UsageError("--out: needs the name of a folder to make");
  if (files::exists(out))
    throw UsageError(out + ": exists, and prepared data are never replaced: remove it or choose another --out");
  return out;
}

// Whole characters of at most about a mebibyte, so that the ids of a large text are not in memory at once.
std::string_view next_piece(std::string_view& text) {
  size_t size = std::min<size_t>(text.size(), 1 << 20);
  while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) ++size;
  const std::string_view piece = text.substr(0, size);
  text.remove_prefix(size);
  return piece;
}

// "a.txt", "a.txt and 3 more"
std::string named(const std::vector<std::string>& names) {
  return names.size() == 1 ? names.front() : cat(names.front(), " and ", names.size() - 1, " more");
}

// A byte order mark says how a file is encoded and is no part of what its author wrote; line ends are, so they are only told
// of. To the byte tokenizer all of it is bytes.
void look_at_marks(std::list<TextFile>& texts, bool by_character, const Progress& progress) {
  std::vector<std::string> marked, with_crlf;
  TextFile::LineEnds sum;
  for (TextFile& file : texts) {
    if (by_character && file.drop_byte_order_mark()) marked.push_back(file.name());
    const TextFile::LineEnds found = file.line_ends();
    if (found.crlf > 0) with_crlf.push_back(file.name());
    if (found.crlf > 0) sum = {sum.all + found.all, sum.crlf + found.crlf};
  }
  if (!marked.empty()) progress.note(named(marked) + ": the byte order mark at the beginning is left out");
  if (!with_crlf.empty()) {
    progress.note(cat(named(with_crlf), ": ", sum.crlf, " of ", sum.all,
                      " line ends are CRLF and stay so, \\r a token each; tr -d \"\\r\" takes them out of a text"));
  }
}

struct FirstPass {
  Vocabulary vocabulary = Vocabulary::bytes();
  bool masked = false;
  int64_t documents = 0;
};

FirstPass look_through(const std::list<TextFile>& texts, const PrepareOptions& options, Meter& meter) {
  FirstPass found;
  CharacterSet characters;
  const bool by_character = options.tokenizer == "char";
  for (const auto& file : texts) {
    int64_t parts = 0;
    file.visit(options.valid, [&](const Document& document, bool held_back) {
      if (by_character) characters.add(document.prompt, file.name());
      if (by_character) characters.add(document.text, file.name());
      found.masked = found.masked || document.has_prompt;
      parts += file.has_lines() || !held_back;
    });
    found.documents += parts;
    meter.advance("reading " + file.name(), file.bytes());
  }
  if (by_character) found.vocabulary = Vocabulary::characters(characters);
  return found;
}

void stop_if_asked(const std::string& out) {
  if (!signals::stop_requested()) return;
  throw Interrupted(cat(out, ": not made: stopped by signal ", signals::which()), signals::which());
}

}  // namespace

PrepareSummary prepare_tokens(const PrepareOptions& options, const Progress& progress) {
  const std::string out = checked_out(options);
  std::list<TextFile> texts;
  uint64_t bytes = 0;
  for (const auto& path : options.files) texts.emplace_back(path);
  look_at_marks(texts, options.tokenizer == "char", progress);
  for (const auto& file : texts) bytes += file.bytes();
  Meter meter(progress, 2 * bytes);
  const FirstPass found = look_through(texts, options, meter);

  // Until here a signal may end the process as it likes (while it waits for standard input, too): nothing is on the disk.
  signals::install();
  StagedFolder staged(out, progress);
  const SplitWriter::Sizes sizes{options.shard_bytes, options.block_bytes};
  SplitWriter train(staged.path() + "/train", "train", found.vocabulary, found.masked, sizes);
  std::optional<SplitWriter> valid;
  if (options.valid > 0) valid.emplace(staged.path() + "/valid", "valid", found.vocabulary, found.masked, sizes);
  for (const auto& file : texts) {
    file.visit(options.valid, [&](const Document& document, bool held_back) {
      SplitWriter& writer = held_back ? *valid : train;
      stop_if_asked(out);
      const auto append = [&](std::string_view text, bool scored) {
        while (!text.empty()) {
          stop_if_asked(out);
          const std::string_view piece = next_piece(text);
          writer.append(found.vocabulary.encode(piece, file.name()), scored);
          meter.advance("writing " + out, piece.size());
        }
      };
      writer.begin_document();
      append(document.prompt, false);
      append(document.text, true);
    });
  }
  train.finish();
  if (valid) valid->finish();
  stop_if_asked(out);
  staged.commit();
  meter.finish("writing " + out);
  return {train.tokens(), valid ? valid->tokens() : 0, found.vocabulary.size(), found.documents};
}

}  // namespace quell
