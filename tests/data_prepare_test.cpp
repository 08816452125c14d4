// From texts to folders of tokens.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "base/error.h"
#include "base/hash.h"
#include "data/verify.h"
#include "data_support.h"

using namespace quell;
using namespace quell::testing;
using Catch::Message;

namespace {

using Ids = std::vector<int64_t>;

std::vector<bool> scored_of(const TokenSet& set) {
  const auto mask = std::make_unique<bool[]>(static_cast<size_t>(set.tokens()));
  set.scored(0, set.tokens(), mask.get());
  return std::vector<bool>(mask.get(), mask.get() + set.tokens());
}

std::string text_of(const TokenSet& set) { return set.vocabulary()->decode(ids_of(set)); }

// Runs prepare on the one file of these bytes.
void prepare_bytes(const std::string& file, const std::string& bytes, const std::string& tokenizer = "char", double valid = 0.1) {
  TemporaryFolder folder;
  if (chdir(folder.path().c_str()) != 0) FAIL("chdir");
  files::write_atomically(file, bytes);
  prepare_tokens({{file}, "out", tokenizer, valid}, {});
}

}  // namespace

TEST_CASE("a text becomes a training and a held-back part that make it up, with one vocabulary", "[unit]") {
  TemporaryFolder folder;
  const std::string text = "abcdefgh\xC3\xA9\xE2\x82\xAC";  // ten characters, of which two are long
  for (const std::string tokenizer : {"byte", "char"}) {
    files::remove_all(folder / "out");
    files::write_atomically(folder / "a.txt", text);
    const auto summary = prepare_tokens({{folder / "a.txt"}, folder / "out", tokenizer, 0.2}, {});
    const TokenSet train = open_set(folder / "out/train"), valid = open_set(folder / "out/valid");
    CHECK(text_of(train) == "abcdefgh");
    CHECK(text_of(valid) == "\xC3\xA9\xE2\x82\xAC");
    CHECK(train.vocabulary_size() == (tokenizer == "char" ? 10 : 256));
    CHECK(valid.vocabulary_size() == train.vocabulary_size());
    CHECK(summary.train_tokens == train.tokens());
    CHECK(summary.valid_tokens == valid.tokens());
    CHECK(summary.vocabulary == train.vocabulary_size());
    CHECK(summary.documents == 1);
    CHECK(files::list(folder / "out") == std::vector<std::string>{"train", "valid"});
    CHECK(files::list(folder / "out/train") == std::vector<std::string>{"00000.bin", "tokens.json"});
  }
}

TEST_CASE("the training part has the share of characters that was asked for, rounded down", "[unit]") {
  const auto train_tokens = [](size_t length, double valid) {
    TemporaryFolder folder;
    return open_set(prepare_text(folder, std::string(length, 'x'), "byte", valid)).tokens();
  };
  CHECK(train_tokens(10, 0.1) == 9);
  CHECK(train_tokens(11, 0.1) == 9);
  CHECK(train_tokens(19, 0.1) == 17);
  CHECK(train_tokens(10, 0.9) == 1);  // (1 - 0.9) * 10 is below 1 in floating point
  CHECK(train_tokens(10, 0.7) == 3);
  CHECK(train_tokens(30, 0.1) == 27);
  CHECK(train_tokens(1000, 0) == 1000);
}

TEST_CASE("valid 0 makes no held-back part", "[unit]") {
  TemporaryFolder folder;
  prepare_text(folder, "abc");
  CHECK(files::list(folder / "out") == std::vector<std::string>{"train"});
}

TEST_CASE("each file is split at its own end and is a document of its own", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(folder / "a.txt", "aaaaAA");
  files::write_atomically(folder / "b.txt", "bbBB");
  CHECK(prepare_tokens({{folder / "a.txt", folder / "b.txt"}, folder / "out", "byte", 0.5}, {}).documents == 2);
  const TokenSet train = open_set(folder / "out/train"), valid = open_set(folder / "out/valid");
  CHECK(text_of(train) == "aaabb");
  CHECK(text_of(valid) == "aAABB");
  Ids documents(5);
  train.documents(0, 5, documents.data());
  CHECK(documents == Ids{0, 0, 0, 1, 1});
  CHECK(train.document_count() == 2);
}

TEST_CASE("lines of JSON are documents, and the last lines are held back", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(
      folder / "a.jsonl",
      "{\"text\": \"one\"}\n{\"id\": 2, \"text\": \"t\\u00e9o\"}\r\n{\"text\": \"three\"}\n{\"text\": \"4\"}");
  CHECK(prepare_tokens({{folder / "a.jsonl"}, folder / "out", "char", 0.25}, {}).documents == 4);
  const TokenSet train = open_set(folder / "out/train"), valid = open_set(folder / "out/valid");
  CHECK(text_of(train) == "onet\xC3\xA9othree");
  CHECK(text_of(valid) == "4");
  CHECK(train.document_count() == 3);
  Ids documents(7);
  train.documents(2, 7, documents.data());
  CHECK(documents == Ids{0, 1, 1, 1, 2, 2, 2});
  CHECK(scored_of(train) == std::vector<bool>(11, true));
  CHECK(files::list(folder / "out/train") == std::vector<std::string>{"00000.bin", "tokens.json"});
}

TEST_CASE("of prompts and answers only the answers are scored", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(
      folder / "a.jsonl",
      "{\"prompt\": \"2+2=\", \"answer\": \"4\\n\"}\n{\"text\": \"ab\"}\n{\"prompt\": \"\", \"answer\": \"c\"}\n");
  prepare_tokens({{folder / "a.jsonl"}, folder / "out", "byte", 0, 6, 4}, {});  // three ids a shard, four bytes a block
  const TokenSet set = open_set(folder / "out/train");
  CHECK(text_of(set) == "2+2=4\nabc");
  CHECK(scored_of(set) == std::vector<bool>{false, false, false, false, true, true, true, true, true});
  CHECK(files::list(folder / "out/train") == std::vector<std::string>{"00000.bin", "00000.scored", "00001.bin", "00001.scored",
                                                                      "00002.bin", "00002.scored", "tokens.json"});
  CHECK(check_data(set.path(), TokenType::automatic, {}).problems.empty());
}

TEST_CASE("shards and blocks cut the tokens and lose none", "[unit]") {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  for (int64_t shard_bytes : {2, 14, 200, 1998, 2000, 2002}) {
    TemporaryFolder folder;
    const TokenSet set = open_set(prepare_text(folder, text, "byte", 0, shard_bytes, 64));
    CHECK(text_of(set) == text);
    CHECK(check_data(set.path(), TokenType::automatic, {}).problems.empty());
    for (int64_t begin : {0, 1, 6, 7, 99, 100, 998}) {
      CHECK(set.vocabulary()->decode(ids_of(set, begin, 2)) == text.substr(static_cast<size_t>(begin), 2));
    }
  }
}

TEST_CASE("the side-car says what the tokens are", "[unit]") {
  TemporaryFolder folder;
  prepare_text(folder, "abab\n", "char", 0.4, 4, 2);
  const Json json = parse_json(files::read(folder / "out/train/tokens.json"), "tokens.json");
  const std::string a("\1\0", 2), b("\2\0", 2);
  CHECK(json == Json({{"format", "quell tokens"},
                      {"version", 1},
                      {"split", "train"},
                      {"vocabulary", {{"kind", "char"}, {"characters", "\nab"}}},
                      {"type", "uint16"},
                      {"tokens", 3},
                      {"largest_id", 2},
                      {"block_bytes", 2},
                      {"shards",
                       {{{"file", "00000.bin"}, {"tokens", 2}, {"xxh3", {xxh3_64_hex(a), xxh3_64_hex(b)}}},
                        {{"file", "00001.bin"}, {"tokens", 1}, {"xxh3", Json::array({xxh3_64_hex(a)})}}}},
                      {"documents", Json::array({0})}}));
}

TEST_CASE("more characters than 16 bits hold are written in 32", "[unit]") {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 70000; ++i) {  // four bytes each, from U+10000
    const auto c = static_cast<unsigned>(0x10000 + i);
    text += static_cast<char>(0xF0 | c >> 18);
    for (int shift : {12, 6, 0}) text += static_cast<char>(0x80 | (c >> shift & 0x3F));
  }
  const TokenSet tokens = open_set(prepare_text(folder, text, "char"));
  CHECK(tokens.vocabulary_size() == 70000);
  CHECK(text_of(tokens) == text);
  CHECK(ids_of(tokens, 69999, 1) == Ids{69999});
  CHECK(files::size(folder / "out/train/00000.bin") == 280000);
}

TEST_CASE("a long text is encoded in pieces without losing a character", "[unit]") {
  TemporaryFolder folder;
  std::string text = "x";  // so that the pieces' borders fall inside characters
  while (text.size() < 3 << 20) text += "\xE2\x82\xAC";
  std::vector<std::pair<uint64_t, uint64_t>> reports;
  files::write_atomically(folder / "a.txt", text);
  prepare_tokens({{folder / "a.txt"}, folder / "out", "char", 0},
                 {[&](const std::string&, uint64_t done, uint64_t total) { reports.emplace_back(done, total); }});
  CHECK(text_of(open_set(folder / "out/train")) == text);
  REQUIRE_FALSE(reports.empty());
  CHECK(std::is_sorted(reports.begin(), reports.end()));
  CHECK(reports.back() == std::pair<uint64_t, uint64_t>(2 * text.size(), 2 * text.size()));
}

TEST_CASE("standard input and pipes can be prepared", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(folder / "text", "from standard input");
  const int saved = dup(0), text = open((folder / "text").c_str(), O_RDONLY);
  dup2(text, 0);
  prepare_tokens({{"-"}, folder / "one", "byte", 0}, {});
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(write(ends[1], "from a pipe", 11) == 11);
  close(ends[1]);
  prepare_tokens({{"/dev/fd/" + std::to_string(ends[0])}, folder / "two", "byte", 0}, {});
  close(ends[0]);
  dup2(saved, 0);
  close(saved);
  close(text);
  CHECK(text_of(open_set(folder / "one/train")) == "from standard input");
  CHECK(text_of(open_set(folder / "two/train")) == "from a pipe");
}

TEST_CASE("wrong options are errors of usage", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(folder / "a.txt", "abc");
  const auto prepare = [&](const PrepareOptions& options) { prepare_tokens(options, {}); };
  const std::vector<std::string> text = {folder / "a.txt"};
  CHECK_THROWS_MATCHES(prepare({{}, "out"}), UsageError, Message("quell data prepare: needs at least one FILE"));
  CHECK_THROWS_MATCHES(prepare({text, ""}), UsageError, Message("--out: needs the name of a folder to make"));
  CHECK_THROWS_MATCHES(prepare({text, "out", "bpe"}), UsageError,
                       Message("--tokenizer: \"bpe\" is not known; byte and char are"));
  CHECK_THROWS_MATCHES(prepare({text, "out", "byte", 1.0}), UsageError,
                       Message("--valid: 1 is not in [0, 1): it is the part of each text that is held back"));
  CHECK_THROWS_AS(prepare({text, "out", "byte", -0.1}), UsageError);
  CHECK_THROWS_AS(prepare({text, "out", "byte", std::numeric_limits<double>::quiet_NaN()}), UsageError);
  files::make_folders(folder / "out");
  CHECK_THROWS_MATCHES(
      prepare({text, (folder / "out") + "/"}), UsageError,
      Message((folder / "out") + ": exists, and prepared data are never replaced: remove it or choose another --out"));
}

TEST_CASE("texts that cannot be used are errors with their place, and leave nothing", "[unit]") {
  CHECK_THROWS_MATCHES(prepare_bytes("a.txt", ""), DataError, Message("a.txt: is empty"));
  CHECK_THROWS_MATCHES(prepare_bytes("a.jsonl", ""), DataError, Message("a.jsonl: is empty"));
  const std::string not_utf8 = " (0xFF) is not UTF-8, which text must be; convert it, for example with iconv -f latin1 -t utf-8";
  CHECK_THROWS_MATCHES(prepare_bytes("a.txt",
                                     "abc\xFF"
                                     "def"),
                       DataError, Message("a.txt: byte 3" + not_utf8));
  CHECK_THROWS_MATCHES(prepare_bytes("a.txt",
                                     "abc\xFF"
                                     "def",
                                     "byte"),
                       DataError, Message("a.txt: byte 3" + not_utf8));
  CHECK_THROWS_MATCHES(prepare_bytes("a.jsonl", "{\"text\":\n\"\xFF\"}"), DataError, Message("a.jsonl: byte 10" + not_utf8));
  CHECK_THROWS_MATCHES(prepare_bytes("a.txt", "x"), DataError,
                       Message("a.txt: 1 characters are too few to hold back 0.1 of them: give more text, or --valid 0"));
  CHECK_THROWS_MATCHES(prepare_bytes("a.jsonl", "{\"text\": \"x\"}\n"), DataError,
                       Message("a.jsonl: 1 lines are too few to hold back 0.1 of them: give more text, or --valid 0"));

  TemporaryFolder folder;
  CHECK_THROWS_MATCHES(prepare_tokens({{folder / "gone"}, folder / "out"}, {}), DataError,
                       Message((folder / "gone") + ": does not exist"));
  CHECK_THROWS_MATCHES(prepare_tokens({{folder.path()}, folder / "out"}, {}), DataError,
                       Message(folder.path() + ": is a folder; name the text files in it"));
  CHECK(files::list(folder.path()).empty());
}

TEST_CASE("bad lines are errors with file and line", "[unit]") {
  const std::string good = "{\"text\": \"x\"}\n";
  const auto with = [&](const std::string& line) { prepare_bytes("a.jsonl", good + line + "\n" + good, "byte", 0); };
  const std::string wanted = ": a line is {\"text\": ...} or {\"prompt\": ..., \"answer\": ...}";
  for (const char* line : {"[]", "{}", "{\"txt\": \"x\"}", "{\"prompt\": \"x\"}", "{\"answer\": \"x\"}",
                           "{\"text\": \"x\", \"answer\": \"y\"}", "{\"text\": \"x\", \"prompt\": \"y\", \"answer\": \"z\"}"}) {
    CHECK_THROWS_MATCHES(with(line), DataError, Message("a.jsonl:2" + wanted));
  }
  CHECK_THROWS_MATCHES(with("{\"text\": 3}"), DataError, Message("a.jsonl:2: \"text\" must be a text, not number"));
  CHECK_THROWS_MATCHES(with("{\"text\": \"\"}"), DataError, Message("a.jsonl:2: \"text\" is empty: leave such a line out"));
  CHECK_THROWS_MATCHES(with("{\"prompt\": \"x\", \"answer\": \"\"}"), DataError,
                       Message("a.jsonl:2: \"answer\" is empty: leave such a line out"));
  CHECK_THROWS_MATCHES(with("{\"text\": \"x\" \"y\"}"), DataError,
                       Message("a.jsonl:2:16: not valid JSON: syntax error while parsing object - unexpected string literal; "
                               "expected '}'"));
  CHECK_THROWS_MATCHES(with("{\"text\": \"x\", \"text\": \"y\"}"), DataError,
                       Message("a.jsonl:2:15: not valid JSON: the name \"text\" stands twice"));
  CHECK_THROWS_AS(with(""), DataError);
}

TEST_CASE("whatever operation fails, the output is there whole or not at all", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(folder / "a.jsonl", "{\"prompt\": \"a\", \"answer\": \"b\"}\n{\"text\": \"cd\"}\n");
  int failures = 0;
  for (int n = 0;; ++n) {
    int count = 0;
    bool failed = false;
    files::set_faults([&](const char*, const std::string&) {
      failed = failed || count == n;
      return count++ == n ? ENOSPC : 0;
    });
    bool thrown = false;
    try {
      prepare_tokens({{folder / "a.jsonl"}, folder / "out", "char", 0.5}, {});
    } catch (const MachineError&) {
      thrown = true;
    }
    files::set_faults({});
    CHECK(thrown == failed);
    const auto names = files::list(folder.path());
    if (names.size() == 2) {  // the last fsync comes after the rename
      CHECK(text_of(open_set(folder / "out/train")) + text_of(open_set(folder / "out/valid")) == "abcd");
      files::remove_all(folder / "out");
    } else {
      CHECK(names == std::vector<std::string>{"a.jsonl"});
    }
    if (!failed) break;
    ++failures;
  }
  CHECK(failures > 30);
}
