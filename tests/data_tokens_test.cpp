// Opening and reading token sets, and what is said of sets that are wrong.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "data/blocks.h"
#include "data_support.h"

using namespace quell;
using namespace quell::testing;
using Catch::Message;

namespace {

using Ids = std::vector<int64_t>;

std::string message_of(const std::string& path, TokenType type = TokenType::automatic, int64_t vocabulary = 0) {
  try {
    open_set(path, type, vocabulary);
  } catch (const DataError& error) {
    return error.what();
  }
  return "(accepted)";
}

}  // namespace

TEST_CASE("a raw file is read as the stated type", "[unit]") {
  TemporaryFolder folder;
  write_ids<uint16_t>(folder / "a.bin", {0, 1, 65535, 7});
  write_ids<uint32_t>(folder / "b.bin", {0, 4000000000u, 7});
  write_ids<int32_t>(folder / "c.bin", {0, 128255, 7});
  const TokenSet a = open_set(folder / "a.bin", TokenType::uint16);
  CHECK(ids_of(a) == Ids{0, 1, 65535, 7});
  CHECK(ids_of(a, 1, 2) == Ids{1, 65535});
  CHECK(ids_of(a, 4, 0).empty());
  CHECK(a.vocabulary_size() == 65536);
  CHECK(a.vocabulary() == nullptr);
  CHECK_FALSE(a.has_documents());
  CHECK(a.path() == folder / "a.bin");
  CHECK(ids_of(open_set(folder / "b.bin", TokenType::uint32)) == Ids{0, 4000000000, 7});
  CHECK(ids_of(open_set(folder / "c.bin", TokenType::int32)) == Ids{0, 128255, 7});
  CHECK(open_set(folder / "c.bin", TokenType::uint16).tokens() == 6);
}

TEST_CASE("reading outside the data is a bug", "[unit]") {
  TemporaryFolder folder;
  write_ids<uint16_t>(folder / "a.bin", {0, 1, 2});
  const TokenSet set = open_set(folder / "a.bin", TokenType::uint16);
  CHECK_THROWS_AS(ids_of(set, 2, 2), Bug);
  CHECK_THROWS_AS(ids_of(set, -1, 2), Bug);
  Ids out(4);
  CHECK_THROWS_AS(set.documents(2, 2, out.data()), Bug);
}

TEST_CASE("a raw file is read through once, and again only when it changed", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "a.bin";
  write_ids<uint16_t>(path, {1, 2, 3});
  int reads = 0;
  const Progress count{[&](const std::string& what, uint64_t done, uint64_t total) {
    CHECK(what == "reading " + path + " once");
    CHECK((done == 6 && total == 6));
    ++reads;
  }};
  const auto open = [&](TokenType type) { return TokenSet::open(path, type, 0, count); };
  CHECK(open(TokenType::uint16).vocabulary_size() == 4);
  CHECK(open(TokenType::uint16).vocabulary_size() == 4);
  CHECK(reads == 1);
  CHECK(files::list(folder.path()) == std::vector<std::string>{"a.bin", "a.bin.quell.json"});
  write_ids<uint16_t>(path, {1, 2, 9});  // of the same size, at another time
  CHECK(open(TokenType::uint16).vocabulary_size() == 10);
  CHECK(reads == 2);
  files::write_atomically(path + ".quell.json", files::read(path + ".quell.json").substr(0, 50));
  CHECK(open(TokenType::uint16).vocabulary_size() == 10);
  CHECK(reads == 3);
  CHECK(open(TokenType::uint16).vocabulary_size() == 10);
  CHECK(reads == 3);
}

TEST_CASE("a result kept for another type is not used", "[unit]") {
  TemporaryFolder folder;
  write_ids<uint32_t>(folder / "a.bin", {65536, 65537});
  CHECK(open_set(folder / "a.bin", TokenType::uint16).vocabulary_size() == 2);
  CHECK(open_set(folder / "a.bin", TokenType::uint32).vocabulary_size() == 65538);
}

TEST_CASE("a raw file in a folder that cannot be written is read each time and said nothing of", "[unit]") {
  TemporaryFolder folder;
  write_ids<uint16_t>(folder / "a.bin", {1, 2, 3});
  files::set_faults([](const char*, const std::string&) { return EROFS; });
  CHECK(open_set(folder / "a.bin", TokenType::uint16).vocabulary_size() == 4);
  files::set_faults({});
  CHECK(files::list(folder.path()) == std::vector<std::string>{"a.bin"});
}

TEST_CASE("the digest follows every byte of the data", "[unit]") {
  TemporaryFolder folder;
  write_ids<uint16_t>(folder / "a.bin", {1, 2, 3});
  write_ids<uint16_t>(folder / "same.bin", {1, 2, 3});
  write_ids<uint16_t>(folder / "other.bin", {1, 0, 3});
  const auto digest = [&](const char* name) { return open_set(folder / name, TokenType::uint16).digest(); };
  CHECK(digest("a.bin").size() == 32);
  CHECK(digest("a.bin") == digest("same.bin"));
  CHECK(digest("a.bin") != digest("other.bin"));
  TemporaryFolder one, two;
  CHECK(open_set(prepare_text(one, "abc")).digest() == open_set(prepare_text(two, "abc")).digest());
}

TEST_CASE("an id above what the side-car states is found when it is read", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abc", "char");
  const TokenSet open = open_set(set);
  std::string bytes = files::read(set + "/00000.bin");
  bytes[4] = 9;
  files::write_atomically(set + "/00000.bin", bytes);
  CHECK(ids_of(open) == Ids{0, 1, 2});  // still the old file's mapping
  const TokenSet damaged = TokenSet::open(set, TokenType::automatic, 0, {}, BlockCheck::none);
  CHECK(ids_of(damaged, 0, 2) == Ids{0, 1});
  CHECK_THROWS_MATCHES(
      ids_of(damaged), DataError,
      Message(set + "/00000.bin: token 2 (byte 4) is id 9, above the largest one, 2, that tokens.json states: the "
                    "file was changed or damaged; copy or prepare it again"));
}

TEST_CASE("what is no token data is said to be none", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "x";
  CHECK(message_of(path) == path + ": does not exist; quell data prepare FILE --out DIR makes DIR/train and DIR/valid");
  files::write_atomically(folder / "a.txt", "text");
  CHECK(message_of(folder / "a.txt", TokenType::uint16) ==
        (folder / "a.txt") + ": is not token data: give a folder that quell data prepare made, or a raw .bin file of tokens");
  CHECK(message_of(folder.path()) == folder.path() + ": has no tokens.json; quell data prepare makes such a folder");
  prepare_text(folder, "abc");
  CHECK(message_of(folder / "out") == (folder / "out") + ": has no tokens.json; did you mean " + (folder / "out/train") + "?");
}

TEST_CASE("raw files that are wrong are errors", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "a.bin";
  write_ids<int32_t>(path, {5, 300, -2});
  CHECK(message_of(path) == path + ": the integer type of a raw file cannot be seen: set data.type to uint16, uint32 or int32");
  CHECK(message_of(path, TokenType::int32) ==
        path + ": token 2 (byte 8) is -2, and ids are not negative: the file is damaged, or not of int32");
  CHECK(message_of(path, TokenType::uint32, 100) ==
        path +
            ": token 1 (byte 4) is id 300, and model.vocabulary 100 allows 0 to 99: raise it to 4294967295, or check data.type");
  files::write_atomically(path, "1234567");
  CHECK(message_of(path, TokenType::uint16) == path + ": has 7 bytes, which is no whole number of uint16 tokens");
  files::write_atomically(path, "123456");
  CHECK(message_of(path, TokenType::uint32) == path + ": has 6 bytes, which is no whole number of uint32 tokens");
  files::write_atomically(path, "");
  CHECK(message_of(path, TokenType::uint16) == path + ": has 0 bytes, which is no whole number of uint16 tokens");
}

TEST_CASE("a token at or above the vocabulary is found before training", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abcdef", "byte", 0, 4);  // two tokens a shard
  CHECK(message_of(set, TokenType::automatic, 103) == "(accepted)");
  CHECK(message_of(set, TokenType::automatic, 102).starts_with(set + "/00002.bin: token 1 (byte 2) is id 102,"));
  CHECK(
      message_of(set, TokenType::automatic, 100) ==
      set +
          "/00001.bin: token 1 (byte 2) is id 100, and model.vocabulary 100 allows 0 to 99: raise it to 103, or check data.type");
}

TEST_CASE("shards that are not what the side-car says are errors", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abcdef", "byte", 0, 4);
  const std::string shard = set + "/00001.bin", bytes = files::read(shard);
  for (size_t size : {0, 1, 3, 5}) {
    files::write_atomically(shard, (bytes + bytes).substr(0, size));
    CHECK(message_of(set) ==
          shard + ": has " + std::to_string(size) + " bytes, and tokens.json says 4: copy or prepare it again");
  }
  files::remove_all(shard);
  CHECK(message_of(set) == shard + ": is missing, and tokens.json lists it: copy or prepare it again");
  files::write_atomically(shard, bytes);
  CHECK(message_of(set) == "(accepted)");
  CHECK(message_of(set, TokenType::uint16) == "(accepted)");
  CHECK(message_of(set, TokenType::uint32) ==
        set + ": holds uint16 tokens, and data.type says uint32: leave data.type out for prepared data");
}

TEST_CASE("a side-car that was cut anywhere is an error", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abcdef", "char", 0, 4);
  const std::string name = set + "/tokens.json", whole = files::read(name);
  for (size_t size = 0; size + 2 < whole.size(); ++size) {  // without the last newline it is whole
    overwrite(name, whole.substr(0, size));
    REQUIRE(message_of(set).starts_with(name + ":"));
  }
  overwrite(name, whole.substr(0, 34));
  CHECK(message_of(set) == name +
                               ":3:6: not valid JSON: syntax error while parsing object key - invalid string: missing closing "
                               "quote; last read: '\"ver'; expected string literal");
}

TEST_CASE("a side-car that says something impossible is an error that names it", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abcdef", "char", 0, 4);
  const std::string name = set + "/tokens.json", whole = files::read(name);
  const auto after = [&](const std::function<void(Json&)>& change) {
    overwrite(name, whole);
    change_side_car(set, change);
    const std::string message = message_of(set);
    return message.starts_with(name + ": ") ? message.substr(name.size() + 2) : message;
  };
  CHECK(after([](Json& j) { j["version"] = 2; }) ==
        "version: 2 is not known; this program reads version 1: prepare the text again, or use the program that wrote it");
  CHECK(after([](Json& j) { j["format"] = "x"; }) == "is not the side-car of prepared tokens (\"format\": \"quell tokens\")");
  CHECK(after([](Json& j) { j = Json::array(); }) == "must be an object");
  CHECK(after([](Json& j) { j.erase("largest_id"); }) == "largest_id: is missing");
  CHECK(after([](Json& j) { j["largest_id"] = 6; }) == "largest_id: 6 is not in the vocabulary of 6");
  CHECK(after([](Json& j) { j["type"] = "int32"; }) == "type: must be \"uint16\" or \"uint32\"");
  CHECK(after([](Json& j) { j["tokens"] = 7; }) == "tokens: 7 is not the sum of the shards, 6");
  CHECK(after([](Json& j) { j["shards"][1]["tokens"] = -2; }) ==
        "shards[1].tokens: must be a whole number from 1 to 2^48, not -2");
  CHECK(after([](Json& j) { j["shards"][1]["tokens"] = 1e300; }) ==
        "shards[1].tokens: must be a whole number from 1 to 2^48, not 1e+300");
  CHECK(after([](Json& j) { j["shards"][1]["tokens"] = 1ull << 60; }) ==
        "shards[1].tokens: must be a whole number from 1 to 2^48, not 1152921504606846976");
  CHECK(after([](Json& j) { j["block_bytes"] = 0; }) == "block_bytes: must be a whole number from 1 to 2^48, not 0");
  CHECK(after([](Json& j) { j["split"] = 3; }) == "split: must be a text, not 3");
  CHECK(after([](Json& j) { j["shards"] = 3; }) == "shards: must be a list, not 3");
  for (const std::string file : {"../00000.bin", "sub/00000.bin", ""}) {
    CHECK(after([&](Json& j) { j["shards"][0]["file"] = file; }) ==
          "shards[0].file: must be the name of a file in this folder, not \"" + file + "\"");
  }
  CHECK(after([](Json& j) { j["shards"][0]["xxh3"] = Json::array(); }) ==
        "shards[0].xxh3: has 0 hashes where 4 bytes have 1 blocks");
  CHECK(after([](Json& j) { j["shards"][0]["xxh3"][0] = "12"; }) ==
        "shards[0].xxh3: must hold texts of 16 hexadecimal digits, not \"12\"");
  CHECK(after([](Json& j) { j["documents"] = Json::array(); }) == "documents: must not be empty");
  const std::string documents = "must begin at 0, ascend, and stay below the number of tokens";
  CHECK(after([](Json& j) { j["documents"] = {1}; }) == "documents[0]: " + documents);
  CHECK(after([](Json& j) { j["documents"] = {0, 3, 3}; }) == "documents[2]: " + documents);
  CHECK(after([](Json& j) { j["documents"] = {0, 6}; }) == "documents[1]: " + documents);
  CHECK(after([](Json& j) { j["vocabulary"]["kind"] = "bpe"; }) ==
        "vocabulary kind \"bpe\" is not known; this program knows \"byte\" and \"char\"");
}

TEST_CASE("a largest id that no token has is an error", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abc");
  change_side_car(set, [](Json& j) { j["largest_id"] = 200; });
  CHECK(message_of(set, TokenType::automatic, 150) ==
        set + ": largest_id is 200 in tokens.json, but no token has that id: prepare it again");
}

namespace {

// Five GiB of uint16 tokens, of which the disk holds the first and the last page.
void write_sparse(const std::string& path) {
  write_ids<uint16_t>(path, {1, 2, 3});
  REQUIRE(truncate(path.c_str(), (int64_t{5} << 30) - 8) == 0);
  files::Appender(path).write_line("\1\1\2\2\3\3\4");  // the newline is the eighth byte
}
// As many characters as there are ids up to 0x0A04.
std::string every_character() {
  std::string text;
  for (unsigned c = 0x800; c < 0x800 + 0x0A05; ++c) {
    text += static_cast<char>(0xE0 | c >> 12);
    text += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (c & 0x3F));
  }
  return text;
}
const int64_t sparse_tokens = int64_t{5} << 29;

}  // namespace

TEST_CASE("the last window of a shard above 4 GiB is read right", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abc");
  write_sparse(set + "/00000.bin");
  change_side_car(set, [&](Json& j) {
    j["vocabulary"] = {{"kind", "char"}, {"characters", every_character()}};
    j["largest_id"] = 0x0A04;
    j["tokens"] = j["shards"][0]["tokens"] = sparse_tokens;
    std::vector<std::string> hashes(80, "0123456789abcdef");
    const files::Mapping shard(set + "/00000.bin");
    for (const int64_t read : {0, 79}) hashes[static_cast<size_t>(read)] = block_hash(shard.bytes(), read, default_block_bytes);
    j["shards"][0]["xxh3"] = hashes;
    j["documents"] = {0, sparse_tokens - 2};
  });
  const TokenSet open = open_set(set);
  CHECK(open.tokens() == sparse_tokens);
  CHECK(ids_of(open, 0, 4) == Ids{1, 2, 3, 0});
  CHECK(ids_of(open, sparse_tokens - 8, 4) == Ids{0, 0, 0, 0});
  Ids documents(4);
  open.documents(sparse_tokens - 4, 4, documents.data());
  CHECK(documents == Ids{0, 0, 1, 1});
  CHECK(ids_of(open, sparse_tokens - 1, 1) == Ids{0x0A04});
}

TEST_CASE("a raw file above 4 GiB is read through and its last window is right", "[slow]") {
  TemporaryFolder folder;
  const std::string path = folder / "large.bin";
  write_sparse(path);
  const TokenSet set = open_set(path, TokenType::uint16, 10000);
  CHECK(set.tokens() == sparse_tokens);
  CHECK(set.vocabulary_size() == 0x0A05);
  CHECK(ids_of(set, sparse_tokens - 5, 5) == Ids{0, 0x101, 0x202, 0x303, 0x0A04});
  CHECK(message_of(path, TokenType::uint16, 0x400) ==
        path +
            ": token 2684354559 (byte 5368709118) is id 2564, and model.vocabulary 1024 allows 0 to 1023: raise it to 2565, "
            "or check data.type");
}
