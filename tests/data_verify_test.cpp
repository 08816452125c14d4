// Whole sets held against what they are meant to be: all that is wrong is told, with files and blocks.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "data/raw.h"
#include "data/verify.h"
#include "image_support.h"

using namespace quell;
using namespace quell::testing;

namespace {

using Names = std::vector<std::string>;

DataCheck check(const std::string& path, TokenType type = TokenType::automatic) { return check_data(path, type, {}); }

Names problems(const TemporaryFolder& folder, const std::string& name) {
  Names all = check(folder / name).problems;
  for (std::string& problem : all) {
    for (size_t at; (at = problem.find(folder.path())) != std::string::npos;) problem.replace(at, folder.path().size(), "DIR");
  }
  return all;
}

std::string block(const std::string& file, int number, int first, int last, const std::string& where = "tokens.json") {
  return "DIR/" + file + ": block " + std::to_string(number) + " (bytes " + std::to_string(first) + " to " + std::to_string(last) +
         ") does not have the hash that stands in " + where + ": the file was changed or damaged; copy or prepare it again";
}

void flip(const std::string& path, size_t at) {
  std::string bytes = files::read(path);
  bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
  overwrite(path, bytes);
}

}  // namespace

TEST_CASE("all blocks that changed, all files that were cut and all that are missing are told", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, std::string(200, 'a'), "byte", 0, 80, 32);  // 40 tokens a shard, three blocks
  const DataCheck sound = check(set);
  CHECK(sound.problems.empty());
  CHECK(sound.looked_at == "15 blocks of 5 files");
  CHECK(sound.facts->count == 200);
  flip(set + "/00000.bin", 0);
  flip(set + "/00000.bin", 79);
  flip(set + "/00004.bin", 40);
  CHECK(problems(folder, "out/train") ==
        Names{block("out/train/00000.bin", 0, 0, 31), block("out/train/00000.bin", 2, 64, 79), block("out/train/00004.bin", 1, 32, 63)});
  CHECK(check(set).facts);  // the sizes are right: it can be opened
  REQUIRE(::truncate((set + "/00001.bin").c_str(), 79) == 0);
  REQUIRE(::unlink((set + "/00003.bin").c_str()) == 0);
  CHECK(problems(folder, "out/train") ==
        Names{block("out/train/00000.bin", 0, 0, 31), block("out/train/00000.bin", 2, 64, 79),
              "DIR/out/train/00001.bin: has 79 bytes, and tokens.json says 80: copy or prepare it again",
              "DIR/out/train/00003.bin: is missing, and tokens.json lists it: copy or prepare it again", block("out/train/00004.bin", 1, 32, 63)});
  CHECK_FALSE(check(set).facts);
}

TEST_CASE("shards that have changed places are found, and a mask that was changed", "[unit]") {
  TemporaryFolder folder;
  overwrite(folder / "a.jsonl", "{\"prompt\": \"2+2=\", \"answer\": \"4\\n\"}\n");
  prepare_tokens({{folder / "a.jsonl"}, folder / "out", "byte", 0, 6, 4}, {});  // two shards of three ids, four bytes a block
  const std::string set = folder / "out/train";
  CHECK(check(set).looked_at == "6 blocks of 4 files");
  overwrite(set + "/00001.scored", std::string("\1\1\1", 3));
  const std::string first = files::read(set + "/00000.bin"), second = files::read(set + "/00001.bin");
  overwrite(set + "/00000.bin", second);
  overwrite(set + "/00001.bin", first);
  const Names found = problems(folder, "out/train");
  CHECK(found.size() == 5);
  CHECK(std::count(found.begin(), found.end(), block("out/train/00001.scored", 0, 0, 2)) == 1);
}

TEST_CASE("a side-car that cannot be read is a problem of its own", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abc");
  overwrite(set + "/tokens.json", "{");
  const Names found = problems(folder, "out/train");
  REQUIRE(found.size() == 1);
  CHECK_THAT(found[0], Catch::StartsWith("DIR/out/train/tokens.json:1:2: not valid JSON"));
}

TEST_CASE("a raw file is held against the hashes that are kept beside it, which a changed file does not replace", "[unit]") {
  TemporaryFolder folder;
  write_ids<uint16_t>(folder / "a.bin", {1, 2, 3});
  CHECK_THROWS_MATCHES(check(folder / "a.bin"), DataError,
                       Catch::Message((folder / "a.bin") + ": there is nothing to compare it with: a run that reads it keeps its hashes in " + (folder / "a.bin.quell.json")));
  CHECK(check(folder / "a.bin", TokenType::uint16).looked_at == "all of it, whose hashes were not kept");
  CHECK(check(folder / "a.bin").looked_at == "1 block of 1 file");
  const std::string kept = files::read(folder / "a.bin.quell.json");
  flip(folder / "a.bin", 1);
  CHECK(problems(folder, "a.bin") == Names{block("a.bin", 0, 0, 5, "DIR/a.bin.quell.json")});
  CHECK(files::read(folder / "a.bin.quell.json") == kept);
  flip(folder / "a.bin", 1);  // as it was, at another time
  CHECK(check(folder / "a.bin").problems.empty());
  overwrite(folder / "a.bin", "1234");
  CHECK(problems(folder, "a.bin") == Names{"DIR/a.bin: has 4 bytes, and DIR/a.bin.quell.json says 6: copy or prepare it again"});
}

TEST_CASE("what is kept beside a raw file is not believed where it is damaged or of another version", "[unit]") {
  TemporaryFolder folder;
  write_ids<uint16_t>(folder / "a.bin", {1, 2, 3});
  const std::string beside = folder / "a.bin.quell.json";
  open_set(folder / "a.bin", TokenType::uint16);
  const Json sound = parse_json(files::read(beside), beside);
  REQUIRE(kept_scan(folder / "a.bin"));
  const auto without = [&](const auto& damage) {
    Json json = sound;
    damage(json, json["of"]);
    overwrite(beside, json.dump());
    CAPTURE(json.dump());
    CHECK_FALSE(kept_scan(folder / "a.bin"));
  };
  without([](Json&, Json& of) { of["format"] = "another"; });
  without([](Json&, Json& of) { of["version"] = 2; });
  without([](Json&, Json& of) { of["block_bytes"] = 1; });
  without([](Json&, Json& of) { of["block_bytes"] = 0; });
  without([](Json&, Json& of) { of["size"] = -6; });
  without([](Json&, Json& of) { of["size"] = INT64_MAX; });
  without([](Json&, Json& of) { of["type"] = "auto"; });
  without([](Json&, Json& of) { of.erase("size"); });
  without([](Json& json, Json&) { json["largest_id"] = -1; });
  without([](Json& json, Json&) { json["xxh3"] = Json::array(); });
  without([](Json& json, Json&) { json["xxh3"] = 3; });
  without([](Json& json, Json&) { json.erase("of"); });
  overwrite(beside, "{");
  CHECK_FALSE(kept_scan(folder / "a.bin"));
}

TEST_CASE("both files of an IDX pair are read whole, and each is told of for itself", "[unit]") {
  TemporaryFolder folder;
  write_idx_pair(folder / "a", 2, 3, "\1\2\3");
  CHECK(check(folder / "a").looked_at == "3 images");
  CHECK(check(folder / "a").problems.empty());
  const std::string images = gzip(idx({3, 2, 3}, varied(18))), labels = files::read(folder / "a-labels-idx1-ubyte");
  REQUIRE(::unlink((folder / "a-images-idx3-ubyte").c_str()) == 0);
  overwrite(folder / "a-images-idx3-ubyte.gz", images);
  CHECK(check(folder / "a").problems.empty());
  flip(folder / "a-images-idx3-ubyte.gz", images.size() - 6);  // of the checksum: what is unpacked is the same
  REQUIRE(problems(folder, "a").size() == 1);
  CHECK_THAT(problems(folder, "a")[0], Catch::StartsWith("DIR/a-images-idx3-ubyte.gz: near byte "));
  overwrite(folder / "a-labels-idx1-ubyte", labels.substr(0, 10));
  const Names both = problems(folder, "a");
  REQUIRE(both.size() == 2);
  CHECK_THAT(both[1], Catch::StartsWith("DIR/a-labels-idx1-ubyte: byte 10: the data end here"));
  overwrite(folder / "a-images-idx3-ubyte.gz", images);
  overwrite(folder / "a-labels-idx1-ubyte", idx({2}, "\1\2"));
  CHECK_THAT(problems(folder, "a").at(0), Catch::Contains("they do not belong together"));
}

TEST_CASE("every image of a folder is decoded, and of many broken ones the first hundred are listed", "[unit]") {
  TemporaryFolder folder;
  const std::string good = png_grey(4, 4, std::vector<uint8_t>(16, 7));
  for (int i = 100; i < 250; ++i) write_file(folder / ("set/a/" + std::to_string(i) + ".png"), good);
  write_file(folder / "set/b/0.png", good);
  CHECK(check(folder / "set").looked_at == "151 images");
  CHECK(check(folder / "set").problems.empty());
  overwrite(folder / "set/a/107.png", good.substr(0, 40));
  overwrite(folder / "set/b/0.png", "GIF89a");
  const Names two = problems(folder, "set");
  REQUIRE(two.size() == 2);
  CHECK_THAT(two[0], Catch::StartsWith("DIR/set/a/107.png: "));
  CHECK(two[1] == "DIR/set/b/0.png: is neither a PNG nor a JPEG file: it seems to be a GIF");
  for (int i = 100; i < 250; ++i) overwrite(folder / ("set/a/" + std::to_string(i) + ".png"), "x");
  const DataCheck many = check(folder / "set");
  CHECK(many.problems.size() == 100);
  CHECK(many.more_problems == 51);
}

TEST_CASE("a folder of images that cannot be a set is told with what is wrong in it", "[unit]") {
  TemporaryFolder folder;
  write_file(folder / "set/a/1.png", "x");
  files::make_folders(folder / "set/empty");
  CHECK(problems(folder, "set") == Names{"DIR/set/empty: holds no .png, .jpg or .jpeg file: every folder here is a class; remove it or fill it"});
}

TEST_CASE("where no set is, nothing is verified", "[unit]") {
  TemporaryFolder folder;
  overwrite(folder / "text.txt", "x");
  files::make_folders(folder / "nothing");
  for (const char* name : {"gone", "text.txt", "nothing", "gone.bin"}) {
    INFO(name);
    CHECK_THROWS_AS(check(folder / name), DataError);
  }
}

TEST_CASE("who asks for a stop is not answered with a problem of the data", "[unit]") {
  TemporaryFolder folder;
  const std::string set = prepare_text(folder, "abc");
  const Progress stop{[](const std::string&, uint64_t, uint64_t) { throw Interrupted("stopped", 2); }};
  CHECK_THROWS_AS(check_data(set, TokenType::automatic, stop), Interrupted);
  write_file(folder / "set/a/1.png", "x");
  CHECK_THROWS_AS(check_data(folder / "set", TokenType::automatic, stop), Interrupted);
}
