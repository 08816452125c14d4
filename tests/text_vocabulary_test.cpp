// Texts to ids and back.
#include <catch2/catch.hpp>
#include <numeric>

#include "base/error.h"
#include "text/vocabulary.h"

using namespace quell;
using Catch::Message;

namespace {

Vocabulary characters_of(std::string_view text) {
  CharacterSet set;
  set.add(text, "text");
  return Vocabulary::characters(set);
}

std::vector<int64_t> wide(const std::vector<uint32_t>& ids) { return {ids.begin(), ids.end()}; }

// One character of each UTF-8 length, at each border of the lengths.
const std::string every_length =
    "\x01\x7F\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";

}  // namespace

TEST_CASE("bytes are their own ids, whatever they are", "[unit]") {
  const Vocabulary bytes = Vocabulary::bytes();
  CHECK(bytes.size() == 256);
  CHECK(bytes.kind() == TokenizerKind::byte);
  std::string all(256, '\0');
  std::iota(all.begin(), all.end(), '\0');
  const auto ids = bytes.encode(all, "text");
  for (uint32_t i = 0; i < 256; ++i) CHECK(ids[i] == i);
  CHECK(bytes.decode(wide(ids)) == all);
}

TEST_CASE("characters are numbered in code point order", "[unit]") {
  const Vocabulary vocabulary = characters_of(
      "ba\n\xC3\xA9"
      "ab");
  CHECK(vocabulary.kind() == TokenizerKind::character);
  CHECK(vocabulary.size() == 4);
  CHECK(vocabulary.encode("\nab\xC3\xA9", "text") == std::vector<uint32_t>{0, 1, 2, 3});
  CHECK(vocabulary.decode({3, 2, 1, 0}) ==
        "\xC3\xA9"
        "ba\n");
}

TEST_CASE("a set of characters may be added in pieces", "[unit]") {
  CharacterSet set;
  set.add("xyz", "one");
  set.add("", "nothing");
  set.add("az", "two");
  CHECK(set.sorted() == std::vector<char32_t>{U'a', U'x', U'y', U'z'});
  CHECK(Vocabulary::characters({}).size() == 0);
}

TEST_CASE("characters of every length survive the way to ids, to JSON and back", "[unit]") {
  const Vocabulary vocabulary = characters_of(every_length);
  CHECK(vocabulary.size() == 10);
  CHECK(vocabulary.decode(wide(vocabulary.encode(every_length, "text"))) == every_length);
  const Vocabulary read = Vocabulary::from_json(parse_json(vocabulary.to_json().dump(), "v"), "v");
  CHECK(read.kind() == TokenizerKind::character);
  CHECK(read.encode(every_length, "text") == vocabulary.encode(every_length, "text"));
  CHECK(read.to_json() == vocabulary.to_json());
  const Vocabulary bytes = Vocabulary::from_json(Vocabulary::bytes().to_json(), "v");
  CHECK(bytes.kind() == TokenizerKind::byte);
  CHECK(bytes.size() == 256);
}

TEST_CASE("ids outside the vocabulary become replacement characters", "[unit]") {
  CHECK(characters_of("ab").decode({0, 2, -1, 1}) ==
        "a\xEF\xBF\xBD\xEF\xBF\xBD"
        "b");
  CHECK(Vocabulary::bytes().decode({65, 256}) == "A\xEF\xBF\xBD");
}

TEST_CASE("a character that is not in the vocabulary is an error at its place", "[unit]") {
  const Vocabulary vocabulary = characters_of("ab\xC3\xA9");
  CHECK_THROWS_MATCHES(vocabulary.encode("\xC3\xA9"
                                         "a\xE2\x82\xAC",
                                         "--prompt"),
                       DataError,
                       Message("--prompt: byte 3: the character \"\xE2\x82\xAC\" (U+20AC) is not among the 3 of the vocabulary, "
                               "which knows the characters of the text that it was made from"));
  CHECK_THROWS_MATCHES(vocabulary.encode("a\n", "--prompt"), DataError,
                       Message("--prompt: byte 1: the character U+000A is not among the 3 of the vocabulary, which knows the "
                               "characters of the text that it was made from"));
}

TEST_CASE("a text that is not UTF-8 is an error at its place", "[unit]") {
  const std::string message =
      "a.txt: byte 2 (0xE9) is not UTF-8, which text must be; convert it, for example with "
      "iconv -f latin1 -t utf-8";
  CHECK_THROWS_MATCHES(CharacterSet().add("ab\xE9 c", "a.txt"), DataError, Message(message));
  CHECK_THROWS_MATCHES(characters_of("ab").encode("ab\xE9 c", "a.txt"), DataError, Message(message));
  CHECK_THROWS_MATCHES(require_utf8("ab\xE9 c", "a.txt"), DataError, Message(message));
}

TEST_CASE("a broken vocabulary file is an error that says what is wrong", "[unit]") {
  const auto read = [](const char* text) { return Vocabulary::from_json(parse_json(text, "v.json"), "v.json"); };
  for (const char* text : {"[]", "{}", "3"}) {
    CHECK_THROWS_MATCHES(read(text), DataError, Message("v.json: a vocabulary is an object with the key \"kind\""));
  }
  CHECK_THROWS_MATCHES(read(R"({"kind": "bpe"})"), DataError,
                       Message("v.json: vocabulary kind \"bpe\" is not known; this program knows \"byte\" and \"char\""));
  for (const char* text :
       {R"({"kind": "char"})", R"({"kind": "char", "characters": ""})", R"({"kind": "char", "characters": [97]})"}) {
    CHECK_THROWS_MATCHES(read(text), DataError,
                         Message("v.json: a vocabulary of kind \"char\" needs \"characters\", a text that is not empty"));
  }
  for (const char* text : {R"({"kind": "char", "characters": "aab"})", R"({"kind": "char", "characters": "ba"})"}) {
    CHECK_THROWS_MATCHES(read(text), DataError,
                         Message("v.json: \"characters\" must ascend by code point, and \"a\" (U+0061) does not"));
  }
}
