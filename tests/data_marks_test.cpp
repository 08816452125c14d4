// Byte order marks and line ends of the texts that are prepared: nothing of a text changes silently.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "data_support.h"

namespace quell {
namespace {

const std::string mark = "\xEF\xBB\xBF";
const std::string crlf_tail = " line ends are CRLF and stay so, \\r a token each; tr -d \"\\r\" takes them out of a text";

struct Prepared {
  std::string text;
  std::vector<std::string> notes;
};

// `names` beside each other with these bytes; notes come with the folder's path taken out.
Prepared prepare(const std::vector<std::pair<std::string, std::string>>& texts, const std::string& tokenizer) {
  const testing::TemporaryFolder folder;
  PrepareOptions options{.files = {}, .out = folder / "out", .tokenizer = tokenizer, .valid = 0};
  for (const auto& [name, bytes] : texts) {
    testing::overwrite(folder / name, bytes);
    options.files.push_back(folder / name);
  }
  Prepared prepared;
  prepare_tokens(options, {.on_note = [&](const std::string& line) {
                   std::string note = line;
                   if (const size_t at = note.find(folder.path() + "/"); at != std::string::npos) note.erase(at, folder.path().size() + 1);
                   prepared.notes.push_back(note);
                 }});
  const TokenSet set = testing::open_set(folder / "out/train");
  prepared.text = set.vocabulary()->decode(testing::ids_of(set));
  return prepared;
}

using Notes = std::vector<std::string>;

}  // namespace

TEST_CASE("characters: a byte order mark is left out with a note; inside a text the same character stays", "[unit]") {
  const Prepared one = prepare({{"a.txt", mark + "ab" + mark + "c\n"}}, "char");
  CHECK(one.text == "ab" + mark + "c\n");
  CHECK(one.notes == Notes{"a.txt: the byte order mark at the beginning is left out"});
  const Prepared several = prepare({{"a.txt", "a"}, {"b.txt", mark + "b"}, {"c.txt", mark + mark + "c"}}, "char");
  CHECK(several.text == "ab" + mark + "c");  // one mark a file
  CHECK(several.notes == Notes{"b.txt and 1 more: the byte order mark at the beginning is left out"});
  CHECK(prepare({{"a.txt", "abc"}}, "char").notes.empty());
  CHECK(prepare({{"a.txt", mark.substr(0, 2) + "\xBE"}}, "char").text == "\xEF\xBB\xBE");
}

TEST_CASE("bytes: a byte order mark stays", "[unit]") {
  const Prepared bytes = prepare({{"a.txt", mark + "ab"}}, "byte");
  CHECK(bytes.text == mark + "ab");
  CHECK(bytes.notes.empty());
}

TEST_CASE("a text of a byte order mark alone is empty", "[unit]") {
  CHECK_THROWS_WITH(prepare({{"a.txt", mark}}, "char"), Catch::EndsWith("a.txt: is empty but for a byte order mark"));
  CHECK(prepare({{"a.txt", mark}}, "byte").text == mark);
}

TEST_CASE("CRLF line ends stay and are counted over all texts in one note", "[unit]") {
  for (const char* tokenizer : {"char", "byte"}) {
    INFO(tokenizer);
    const Prepared one = prepare({{"a.txt", "\r\nab\r\nc\nd\re\n\r"}}, tokenizer);
    CHECK(one.text == "\r\nab\r\nc\nd\re\n\r");
    CHECK(one.notes == Notes{"a.txt: 2 of 4" + crlf_tail});
    const Prepared several = prepare({{"a.txt", "a\n"}, {"b.txt", "b\r\n"}, {"c.txt", "c\r\nd\n"}}, tokenizer);
    CHECK(several.text == "a\nb\r\nc\r\nd\n");
    CHECK(several.notes == Notes{"b.txt and 1 more: 2 of 3" + crlf_tail});
    CHECK(prepare({{"a.txt", "\na\rb\n"}}, tokenizer).notes.empty());
  }
}

TEST_CASE("of .jsonl neither mark nor line ends are part of a document", "[unit]") {
  const Prepared lines = prepare({{"a.jsonl", mark + "{\"text\": \"a\\r\\n\"}\r\n{\"text\": \"b\"}\r\n"}}, "char");
  CHECK(lines.text == "a\r\nb");
  CHECK(lines.notes.empty());
}

}  // namespace quell
