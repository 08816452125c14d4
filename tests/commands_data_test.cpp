// `quell data verify`, and `quell train --resume` on data that changed: the program itself, its answers and its exit codes.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "child.h"
#include "run_place.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;
using testing::slurp;

struct Place : testing::RunPlace {
  Place()
      : RunPlace("name: tiny\nsteps: 4\nthreads: 1\nmodel: {context: 32, width: 32, layers: 1, heads: 2, mlp: {width: 64}}\n"
                 "data: {train: text/train, batch: 4}\nevaluate: {sets: [{name: valid, data: text/valid}], batches: 2}\n"
                 "checkpoint: {every: 2}\n") {}
  void change_byte(const std::string& name) const {
    std::string bytes = slurp(*this / name);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::ofstream(*this / name, std::ios::binary | std::ios::trunc) << bytes;
  }
  void train() const { REQUIRE(run("train run.yaml").code == 0); }
};

}  // namespace

TEST_CASE("data verify answers in words and as JSON: 0 where all is sound, 1 where it is not, 3 where there is nothing", "[unit]") {
  const Place place;
  const Outcome sound = place.run("data verify text/train text/valid");
  CHECK(sound.code == 0);
  CHECK(sound.out == "text/train: sound, 1 block of 1 file\ntext/valid: sound, 1 block of 1 file\n");
  CHECK(sound.err.empty());
  CHECK(place.run("data verify text").out == sound.out);  // as prepare has made it
  place.change_byte("text/valid/00000.bin");
  const Outcome broken = place.run("data verify text --json");
  CHECK(broken.code == 1);
  const Json json = parse_json(broken.out, "answer");
  REQUIRE(json.size() == 2);
  CHECK((json[0]["path"] == "text/train" && json[0]["sound"] == true && json[0]["looked_at"] == "1 block of 1 file"));
  CHECK((json[1]["path"] == "text/valid" && json[1]["sound"] == false && json[1]["problems"].size() == 1));
  const Outcome words = place.run("data verify text");
  CHECK_THAT(words.out, Catch::Contains("text/valid: not sound\n  text/valid/00000.bin: block 0 (bytes 0 to "));
  for (const char* nothing : {"nowhere", "text.txt", "text nowhere"}) {
    const Outcome none = place.run(cat("data verify ", nothing));
    CHECK(none.code == 3);
    CHECK(none.out.empty());
  }
}

TEST_CASE("data verify of a run holds its sets against what it was begun with", "[unit]") {
  const Place place;
  place.train();
  const Outcome sound = place.run("data verify runs/tiny");
  CHECK(sound.code == 0);
  CHECK(sound.out == "runs/tiny train: text/train: sound, 1 block of 1 file, what the run was begun with\n"
                     "runs/tiny valid: text/valid: sound, 1 block of 1 file, what the run was begun with\n");
  fs::rename(place / "text/train", place / "text/aside");
  const Outcome gone = place.run("data verify runs/tiny");
  CHECK(gone.code == 1);
  CHECK_THAT(gone.out, Catch::Contains("runs/tiny train: text/train: not sound\n  text/train: does not exist"));
  // Sound in itself, but not what was trained on.
  fs::rename(place / "text/valid", place / "text/train");
  const Outcome other = place.run("data verify runs/tiny --json");
  CHECK(other.code == 1);
  const Json json = parse_json(other.out, "answer");
  CHECK((json[0]["run"] == "runs/tiny" && json[0]["set"] == "train"));
  CHECK_THAT(json[0]["problems"][0].get<std::string>(), Catch::Contains("text/train: is not what this run was begun with") && Catch::Contains("\n  00000.bin: cut from "));
}

TEST_CASE("data verify names what was changed of a raw file that a run has read", "[unit]") {
  const Place place;
  fs::copy(place / "text/train/00000.bin", place / "raw.bin");
  REQUIRE(place.run("train run.yaml data.train=raw.bin data.type=uint16 model.vocabulary=100").code == 0);
  CHECK(place.run("data verify runs/tiny raw.bin").code == 0);
  place.change_byte("raw.bin");
  const Outcome changed = place.run("data verify runs/tiny");
  CHECK(changed.code == 1);
  CHECK_THAT(changed.out, Catch::Contains("  raw.bin: block 0 (bytes 0 to "));
  fs::remove(place / "raw.bin.quell.json");
  const Outcome unkept = place.run("data verify runs/tiny");
  CHECK(unkept.code == 1);
  CHECK_THAT(unkept.out, Catch::Contains("\n  raw.bin: changed (digest "));
}

TEST_CASE("a data.json beside a set does not make it a run's folder", "[unit]") {
  const Place place;
  std::ofstream(place / "text/data.json") << "{}";
  CHECK(place.run("data verify text").out == "text/train: sound, 1 block of 1 file\ntext/valid: sound, 1 block of 1 file\n");
}

TEST_CASE("data verify shows how far it is, and one signal ends it at once", "[unit]") {
  const Place place;
  // 64 GiB of nothing, which take no room and many seconds to read.
  std::ofstream(place / "large.bin") << "";
  REQUIRE(::truncate((place / "large.bin").c_str(), off_t{64} << 30) == 0);
  const Json kept{{"of", {{"format", "quell raw scan"}, {"version", 1}, {"type", "uint16"}, {"size", int64_t{64} << 30}, {"block_bytes", int64_t{64} << 20}}},
                  {"largest_id", 0},
                  {"xxh3", std::vector<std::string>(1024, "0123456789abcdef")}};
  std::ofstream(place / "large.bin.quell.json") << kept.dump();
  testing::Child child(place.path(), {"data", "verify", "large.bin"});
  REQUIRE(child.wait_for([&] { return child.said().find("verifying large.bin: ") != std::string::npos; }));
  child.signal(SIGINT);
  CHECK(child.wait() == 128 + SIGINT);
}

TEST_CASE("a resume on data that changed is refused with the file, and no --accept takes it", "[unit]") {
  const Place place;
  place.train();
  const std::string before = slurp(place / "runs/tiny/data.json");
  CHECK_THAT(before, Catch::Contains("\"parts\"") && Catch::Contains("\"modified_ns\"") && Catch::Contains("\"vocabulary\""));
  std::ofstream(place / "text.txt", std::ios::app) << "and one more line\n";
  fs::remove_all(place / "text");
  REQUIRE(place.run("data prepare --tokenizer char --out text text.txt").code == 0);
  for (const char* accept : {"", " --accept data", " --accept data.train"}) {
    const Outcome refused = place.run(cat("train run.yaml --resume", accept));
    INFO(refused.err);
    CHECK(refused.code == 3);
    CHECK_THAT(refused.err, Catch::Contains("text/train: is not what this run was begun with: its digest is ") &&
                                Catch::Contains("\n  00000.bin: grown from ") && Catch::Contains("text/valid: is not what"));
  }
  CHECK(slurp(place / "runs/tiny/data.json") == before);
}

TEST_CASE("a resume on a copy of the data goes on with a warning, and a damaged copy ends it where it is read", "[unit]") {
  const Place place;
  place.train();
  fs::copy(place / "text", place / "local", fs::copy_options::recursive);
  const auto resume = [&](int steps, const char* more = "") {
    return place.run(cat("train run.yaml --resume data.train=local/train evaluate.sets.0.data=local/valid steps=", steps, " ", more, " --accept steps"));
  };
  const Outcome copied = resume(6);
  INFO(copied.err);
  CHECK(copied.code == 0);
  CHECK_THAT(copied.err, Catch::Contains("warning: local/train: 00000.bin was written since; sizes are the same, and contents are checked when they are read"));
  place.change_byte("local/train/00000.bin");
  const Outcome damaged = resume(8);
  CHECK(damaged.code == 3);
  CHECK_THAT(damaged.err, Catch::Contains("local/train/00000.bin: block 0 (bytes 0 to ") && Catch::Contains("--resume goes on from there"));
  const Outcome unseen = resume(8, "data.verify=none");
  CHECK(unseen.code == 0);
  CHECK_THAT(unseen.err, Catch::Contains("contents are not checked (data.verify: none)"));
  REQUIRE(::truncate((place / "local/train/00000.bin").c_str(), 100) == 0);
  const Outcome cut = resume(10);
  CHECK(cut.code == 3);
  CHECK_THAT(cut.err, Catch::Contains("local/train/00000.bin: has 100 bytes, and tokens.json says "));
}

TEST_CASE("an image that was replaced by one of its size is told by its class, and a class that was added is refused", "[unit]") {
  const Place place;
  const std::string picture = slurp(std::string(QUELL_GOLDEN) + "/images/basn0g08.png");
  for (const char* name : {"cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png"}) {
    fs::create_directories(fs::path(place / "pets" + "/" + name).parent_path());
    std::ofstream(place / "pets" + "/" + name, std::ios::binary) << picture;
  }
  std::ofstream(place / "pets.yaml") << "name: pets\nsteps: 2\nthreads: 1\nmodel: {kind: vit, image: 16, channels: 1, patch: 8, width: 16, layers: 1, heads: 2}\n"
                                        "data: {kind: images, train: pets, batch: 2}\noptimizer: {schedule: {kind: constant}}\ncheckpoint: {every: 1}\n";
  const Outcome first = place.run("train pets.yaml");
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK(place.run("data verify runs/pets").out == "runs/pets train: pets: sound, 4 images, what the run was begun with\n");
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 7}};
  REQUIRE(::utimensat(AT_FDCWD, (place / "pets/dog/1.png").c_str(), times, 0) == 0);
  REQUIRE(::utimensat(AT_FDCWD, (place / "pets/dog/2.png").c_str(), times, 0) == 0);
  const Outcome written = place.run("train pets.yaml --resume steps=3");
  INFO(written.err);
  CHECK(written.code == 0);
  CHECK_THAT(written.err, Catch::Contains("warning: pets: dog was written since; names and sizes are the same, and contents are not hashed"));
  std::ofstream(place / "pets/dog/2.png", std::ios::binary | std::ios::trunc) << picture.substr(0, 60);
  fs::create_directories(place / "pets/eel");
  std::ofstream(place / "pets/eel/1.png", std::ios::binary) << picture;
  const Outcome refused = place.run("train pets.yaml --resume steps=4");
  CHECK(refused.code == 3);
  CHECK_THAT(refused.err, Catch::Contains("\n  dog: has 2 files of ") && Catch::Contains("\n  eel: added (1 file of "));
  const Outcome verified = place.run("data verify runs/pets");
  CHECK(verified.code == 1);
  CHECK_THAT(verified.out, Catch::Contains("  pets/dog/2.png: ") && Catch::Contains("\n  eel: added"));
}

}  // namespace quell
