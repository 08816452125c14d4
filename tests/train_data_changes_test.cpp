// Data that are not what a run was begun with: what was added, removed, cut or changed is named, and what was only written again is not
// refused. Each case records a set, changes it on the disk, opens it again as a resumed run does, and compares.
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "train/data_record.h"
#include "train_support.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryFolder;
using testing::TinyImages;
using testing::TinyText;
using testing::tiny_vision;

void write(const std::string& path, const std::string& bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Some other time, by the clock of no one.
void touch(const std::string& path) {
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 7}};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
}

// 400 characters in shards of 100 tokens, two blocks each. Every `tail` has the characters of all others, so that ids stay the same.
class Text {
 public:
  Text() { prepare("dcba"); }
  void prepare(const std::string& tail, const std::string& head = "abcd", size_t count = 100) const {
    std::string text = head;
    while (text.size() < 4 * count) text += "abcd";
    text.replace(text.size() - tail.size(), tail.size(), tail);
    write(folder_ / "text.txt", text);
    fs::remove_all(folder_ / "set");
    prepare_tokens({{folder_ / "text.txt"}, folder_ / "set", "char", 0, 200, 100}, {});
  }
  template <class Change>
  void change_side_car(const Change& change) const {
    Json json = parse_json(files::read(train() + "/tokens.json"), "tokens.json");
    change(json);
    write(train() + "/tokens.json", json.dump());
  }
  std::string train() const { return folder_ / "set/train"; }
  Json record() const { return record_of(facts_of(TokenSet::open(train(), TokenType::automatic, 0, {}))); }

 private:
  TemporaryFolder folder_;
};

using Lines = std::vector<std::string>;
Lines changed(const Json& before, const Json& now) { return difference_of(before, now).parts; }
bool same(const Json& before, const Json& now) { return difference_of(before, now).what.empty(); }

// What a line says behind the digests, which no person can foresee.
std::string without_digests(const std::string& line) { return line.substr(0, line.find(" (digest ")); }

}  // namespace

TEST_CASE("a shard that was added, removed, cut, grown or changed is named", "[unit]") {
  const Text text;
  const Json before = text.record();
  CHECK(before["parts"].size() == 4);
  CHECK(same(before, text.record()));
  text.prepare("dcba", "abcd", 110);
  CHECK(changed(before, text.record()) == Lines{"00003.bin: changed (digest " + text.record()["parts"][3]["digest"].get<std::string>() + ", was " +
                                                    before["parts"][3]["digest"].get<std::string>() + ")",
                                                "00004.bin: added (80 bytes)"});
  text.prepare("abcd", "abcd", 75);
  CHECK(changed(before, text.record()) == Lines{"00003.bin: removed (it had 200 bytes)"});
  text.prepare("dcba", "abcd", 90);
  CHECK(changed(before, text.record()) == Lines{"00003.bin: cut from 200 to 120 bytes"});
  const Json shorter = text.record();
  text.prepare("dcba");
  CHECK(changed(shorter, text.record()) == Lines{"00003.bin: grown from 120 to 200 bytes"});
  text.prepare("dcba", "dcba");
  const Lines first = changed(before, text.record());
  REQUIRE(first.size() == 1);
  CHECK(without_digests(first[0]) == "00000.bin: changed");
}

TEST_CASE("shards that are listed in another order, and documents with other borders, are other data though no file changed", "[unit]") {
  const Text text;
  const Json before = text.record();
  text.prepare("dcba", "dcba");
  const Json other = text.record();
  text.change_side_car([](Json& json) { std::swap(json["shards"][0], json["shards"][1]); });
  const Json now = text.record();
  REQUIRE(changed(other, now).size() == 1);
  CHECK_THAT(changed(other, now)[0], Catch::StartsWith("in its files nothing: in their order"));
  text.prepare("dcba");
  CHECK(same(before, text.record()));
  text.change_side_car([](Json& json) { json["documents"] = {0, 7}; });
  CHECK(changed(before, text.record()).size() == 1);
}

TEST_CASE("the same ids of another vocabulary are other data", "[unit]") {
  const Text text;
  const Json before = text.record();
  text.change_side_car([](Json& json) { json["vocabulary"]["characters"] = "abce"; });
  const Json now = text.record();
  CHECK(before["digest"] == now["digest"]);
  CHECK_FALSE(same(before, now));
  CHECK(changed(before, now) == Lines{"tokens.json: another vocabulary"});
}

TEST_CASE("files that were only written again are the same data, and the first is named", "[unit]") {
  const Text text;
  const Json before = text.record();
  touch(text.train() + "/00001.bin");
  CHECK(difference_of(before, text.record()).rewritten == "00001.bin");
  touch(text.train() + "/00000.bin");
  touch(text.train() + "/00003.bin");
  CHECK(difference_of(before, text.record()).rewritten == "00000.bin and 2 more");
  CHECK(same(before, text.record()));
}

TEST_CASE("records of older versions are compared by what they have", "[unit]") {
  const Text text;
  Json before = text.record();
  before.erase("parts");
  before.erase("vocabulary");
  CHECK(same(before, text.record()));
  CHECK(difference_of(before, text.record()).rewritten.empty());
  text.prepare("aaaa");
  CHECK_FALSE(same(before, text.record()));
  CHECK(text_of(difference_of(before, text.record()), before, text.record()) ==
        cat(text.train(), ": is not what this run was begun with: its digest is ", text.record()["digest"].get<std::string>(), ", was ",
            before["digest"].get<std::string>(), " (", text.train(), "); put back what was there, or begin a new run"));
  CHECK_FALSE(same(Json::object(), text.record()));
}

TEST_CASE("of many changes a handful is shown and the rest counted", "[unit]") {
  const Text text;
  text.prepare("dcba", "abcd", 250);
  const Json before = text.record();
  text.prepare("dcba", "abcd", 25);
  const Json now = text.record();
  const std::string said = text_of(difference_of(before, now), before, now);
  CHECK(std::count(said.begin(), said.end(), '\n') == 9);
  CHECK_THAT(said, Catch::EndsWith("\n  and 2 more"));
}

TEST_CASE("a raw file and the files of an IDX pair are named; a pair that was only packed is the same", "[unit]") {
  const TemporaryFolder folder;
  const auto raw = [&] { return record_of(facts_of(TokenSet::open(folder / "a.bin", TokenType::uint16, 0, {}))); };
  write(folder / "a.bin", std::string(8, '\1'));
  const Json before = raw();
  write(folder / "a.bin", std::string(6, '\1'));
  CHECK(changed(before, raw()) == Lines{"a.bin: cut from 8 to 6 bytes"});

  const TinyImages images;
  const auto pair = [&] { return record_of(facts_of(ImageSet::open(images.train(), {}))); };
  const Json whole = pair();
  REQUIRE(whole["parts"].size() == 2);
  const std::string file = images.train() + "-labels-idx1-ubyte", labels = files::read(file);
  touch(file);
  CHECK(same(whole, pair()));
  write(file, labels.substr(0, labels.size() - 1) + '\2');
  REQUIRE(changed(whole, pair()).size() == 1);
  CHECK(without_digests(changed(whole, pair())[0]) == "train-labels-idx1-ubyte: changed");
}

TEST_CASE("a class of images that was added, removed or changed is named, without an entry for each file", "[unit]") {
  const TemporaryFolder folder;
  const auto record = [&] { return record_of(facts_of(ImageSet::open(folder / "set", {}))); };
  for (const char* name : {"cat/1.png", "cat/2.png", "dog/1.png"}) write(folder / "set" + "/" + name, "12345");
  const Json before = record();
  CHECK(before["parts"].size() == 2);
  CHECK(before["parts"][0]["files"] == 2);
  write(folder / "set/eel/1.png", "1");
  CHECK(changed(before, record()) == Lines{"eel: added (1 file of 1 bytes)"});
  const Json three = record();
  fs::remove_all(folder / "set/eel");
  CHECK(changed(three, record()) == Lines{"eel: removed (it had 1 file of 1 bytes)"});
  write(folder / "set/cat/1.png", "123456");
  CHECK(changed(before, record()) == Lines{"cat: has 2 files of 11 bytes, had 2 files of 10 bytes"});
  write(folder / "set/cat/1.png", "12345");
  CHECK(same(before, record()));
  fs::rename(folder / "set/cat/1.png", folder / "set/cat/3.png");
  REQUIRE(changed(before, record()).size() == 1);
  CHECK(without_digests(changed(before, record())[0]) == "cat: names or sizes of its files were changed");
  fs::rename(folder / "set/cat/3.png", folder / "set/cat/1.png");
  const Json again = record();
  CHECK(same(before, again));
  write(folder / "set/dog/1.png", "54321");  // of the same size: only its time tells
  touch(folder / "set/dog/1.png");
  CHECK(same(again, record()));
  CHECK(difference_of(again, record()).rewritten == "dog");
}

TEST_CASE("a run is refused other training data, and other evaluation data under the same name and path", "[unit]") {
  const TinyImages images;
  RunConfig config = tiny_vision(images);
  const auto refusal = [&](const Json& before) -> std::string {
    const Run run(config, {});
    try {
      require_same_data(run, before, data_record(run));
    } catch (const DataError& problem) {
      return problem.what();
    }
    return "";
  };
  const Json before = data_record(Run(config, {}));
  CHECK(refusal(before).empty());
  const std::string test = images.test() + "-labels-idx1-ubyte", train = images.train() + "-labels-idx1-ubyte";
  const std::string test_labels = files::read(test), train_labels = files::read(train);
  write(test, test_labels.substr(0, test_labels.size() - 1) + '\0');
  CHECK_THAT(refusal(before), Catch::StartsWith(images.test() + ": is not what this run was begun with: its digest is ") &&
                                  Catch::Contains("\n  test-labels-idx1-ubyte: changed"));
  write(train, train_labels.substr(0, train_labels.size() - 1) + '\2');
  CHECK_THAT(refusal(before), Catch::StartsWith(images.train() + ": ") && Catch::Contains("\n" + images.test() + ": "));  // both
  write(train, train_labels);
  config.evaluate.sets[0].name = "other";  // another set: of its own
  CHECK(refusal(before).empty());
  config.evaluate.sets[0] = {"test", images.train()};  // the run file says so
  CHECK(refusal(before).empty());
}

TEST_CASE("a kept record that no run has written is the checkpoint's error, whatever is wrong in it", "[unit]") {
  const TinyImages images;
  const Run run(tiny_vision(images), {});
  const Json now = data_record(run);
  const auto damaged = [&](const auto& damage) {
    Json before = now;
    before["train"]["digest"] = "0";  // else nobody looks at the parts
    damage(before, before["train"]["parts"][0]);
    return before;
  };
  const Json records[] = {
      Json::array(),
      damaged([](Json& all, Json&) { all["train"] = 3; }),
      damaged([](Json& all, Json&) { all["train"]["digest"] = 3; }),
      damaged([](Json& all, Json&) { all["train"]["path"] = Json::array(); }),
      damaged([](Json& all, Json&) { all["train"]["parts"] = "all"; }),
      damaged([](Json&, Json& part) { part = 3; }),
      damaged([](Json&, Json& part) { part["name"] = 3; }),
      damaged([](Json&, Json& part) { part["bytes"] = "many"; }),
      damaged([](Json&, Json& part) { part.erase("name"); }),
      damaged([](Json&, Json& part) { part.erase("bytes"); }),
      damaged([](Json&, Json& part) { part.erase("digest"); }),
  };
  for (const Json& before : records) {
    CAPTURE(before.dump());
    CHECK_THROWS_AS(require_same_data(run, before, now), CheckpointError);
  }
  Json untimed = now;  // of the same data the times are compared
  untimed["train"]["parts"][0].erase("modified_ns");
  CHECK_THROWS_AS(require_same_data(run, untimed, now), CheckpointError);
}

TEST_CASE("of a raw file that was only written again nobody is warned: it was read whole when it was opened", "[unit]") {
  const TinyText text;
  RunConfig config = testing::tiny_config(text);
  const auto warnings = [&] {
    const Run run(config, {});
    const Json before = data_record(run);
    touch(testing::data_of(config).train.ends_with(".bin") ? testing::data_of(config).train : testing::data_of(config).train + "/00000.bin");
    const TemporaryFolder folder;
    log::also_to_file(folder / "log.txt");
    const Run again(config, {});
    require_same_data(again, before, data_record(again));
    return files::read(folder / "log.txt");
  };
  CHECK_THAT(warnings(), Catch::Contains("00000.bin was written since"));
  testing::data_of(config) = TokenData{.train = text.folder() / "raw.bin", .batch = 8, .type = TokenType::uint16};
  config.evaluate.sets.clear();
  fs::copy_file(text.train() + "/00000.bin", text.folder() / "raw.bin");
  CHECK_THAT(warnings(), !Catch::Contains("was written since"));
}

}  // namespace quell
