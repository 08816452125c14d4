// Token data that change after they were opened: each block is looked at when it is first read, once for all copies of a set.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <thread>

#include "base/error.h"
#include "base/signals.h"
#include "data_support.h"

using namespace quell;
using namespace quell::testing;
using Catch::Message;

namespace {

using Ids = std::vector<int64_t>;

// 100 tokens 'a' in shards of 40 tokens and blocks of 16.
std::string three_shards(const TemporaryFolder& folder) { return prepare_text(folder, std::string(100, 'a'), "byte", 0, 80, 32); }

// In the file that is there, and nothing else of it.
void change_byte(const std::string& path, int64_t at, char value) {
  const int file = ::open(path.c_str(), O_WRONLY);
  REQUIRE(::pwrite(file, &value, 1, at) == 1);
  ::close(file);
}

std::string changed_block(const std::string& path, int block, int first, int last, const std::string& where = "tokens.json") {
  return path + ": block " + std::to_string(block) + " (bytes " + std::to_string(first) + " to " + std::to_string(last) +
         ") does not have the hash that stands in " + where + ": the file was changed or damaged; copy or prepare it again";
}

class CountedReads {
 public:
  explicit CountedReads(int fail_with = 0) {
    files::set_faults([this, fail_with](const char* operation, const std::string&) {
      count_ += std::string(operation) == "read";
      return std::string(operation) == "read" ? fail_with : 0;
    });
  }
  ~CountedReads() { files::set_faults({}); }
  int count() const { return count_; }

 private:
  std::atomic<int> count_{0};
};

}  // namespace

TEST_CASE("a byte that is changed between two reads is found when its block is first read, and the file and block are named", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(three_shards(folder));
  CHECK(ids_of(set, 0, 60) == Ids(60, 'a'));
  const std::string second = set.path() + "/00001.bin";
  change_byte(second, 70, 'b');  // token 75, in the last block of its shard
  CHECK(ids_of(set, 40, 32) == Ids(32, 'a'));  // the blocks before it
  CHECK_THROWS_MATCHES(ids_of(set, 70, 5), DataError, Message(changed_block(second, 2, 64, 79)));
  CHECK_THROWS_MATCHES(ids_of(set, 0, 100), DataError, Message(changed_block(second, 2, 64, 79)));
  CHECK(ids_of(set, 80, 20) == Ids(20, 'a'));
  change_byte(second, 70, 'a');
  CHECK(ids_of(set) == Ids(100, 'a'));  // a failed look is not remembered
}

TEST_CASE("data.verify: none looks at no block", "[unit]") {
  TemporaryFolder folder;
  const std::string path = three_shards(folder);
  const CountedReads reads;
  const TokenSet set = TokenSet::open(path, TokenType::automatic, 0, {}, BlockCheck::none);
  change_byte(path + "/00000.bin", 0, 'A');
  CHECK(ids_of(set, 0, 2) == Ids{'A', 'a'});
  CHECK(reads.count() == 0);
}

TEST_CASE("a block is read for its hash once, by whichever copy of the set comes first, and only those that are needed", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(three_shards(folder)), copy = set;
  const CountedReads reads;
  ids_of(set, 0, 16);
  CHECK(reads.count() == 1);
  ids_of(copy, 15, 2);  // over the border of two blocks
  CHECK(reads.count() == 2);
  ids_of(copy, 0, 100);
  CHECK(reads.count() == 3 + 3 + 2);
  ids_of(set, 0, 100);
  CHECK(reads.count() == 8);
  ids_of(set, 100, 0);
  CHECK(reads.count() == 8);
}

TEST_CASE("threads that read the same blocks at once read the same tokens", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(three_shards(folder));
  Ids a, b;
  std::thread other([&] { b = ids_of(set); });
  a = ids_of(set);
  other.join();
  CHECK(a == Ids(100, 'a'));
  CHECK(a == b);
}

TEST_CASE("a file that is cut off while it is open is an error before it is touched, also where its blocks were looked at", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(three_shards(folder));
  const std::string first = set.path() + "/00000.bin";
  REQUIRE(::truncate(first.c_str(), 40) == 0);
  CHECK(ids_of(set, 0, 16) == Ids(16, 'a'));
  CHECK_THROWS_MATCHES(ids_of(set, 16, 1), DataError, Message(first + ": has 40 bytes, and tokens.json says 80: copy or prepare it again"));
  REQUIRE(::truncate(first.c_str(), 0) == 0);  // now no page of it is left: touching one would end this program
  CHECK_THROWS_AS(ids_of(set, 32, 1), DataError);
  CHECK_THROWS_AS(ids_of(set, 0, 16), DataError);
}

TEST_CASE("a file that is cut off is found under data.verify: none too: to touch what is gone would end the program", "[unit]") {
  TemporaryFolder folder;
  const std::string path = three_shards(folder), first = path + "/00000.bin";
  const TokenSet set = TokenSet::open(path, TokenType::automatic, 0, {}, BlockCheck::none);
  REQUIRE(::truncate(first.c_str(), 0) == 0);
  CHECK_THROWS_MATCHES(ids_of(set, 0, 1), DataError, Message(first + ": has 0 bytes, and tokens.json says 80: copy or prepare it again"));
  CHECK(ids_of(set, 40, 40) == Ids(40, 'a'));
}

TEST_CASE("a stop that is asked for while a block is read ends the reading, and the block does not count as sound", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(three_shards(folder));
  const pid_t child = fork();  // the flag is the whole process's
  REQUIRE(child >= 0);
  if (child == 0) {
    signals::install();
    std::raise(SIGTERM);
    const auto is_stopped = [&] {
      try {
        ids_of(set, 0, 1);
        return false;
      } catch (const Stopped&) {
        return true;
      }
    };
    _exit(is_stopped() && is_stopped() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(ids_of(set, 0, 1) == Ids{'a'});
}

TEST_CASE("a file that only grows, or whose name another file takes, is still what was opened", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(three_shards(folder));
  const std::string first = set.path() + "/00000.bin", second = set.path() + "/00001.bin";
  std::ofstream(first, std::ios::app) << "more";
  files::write_atomically(second, std::string(80, 'x'));
  REQUIRE(::unlink((set.path() + "/00002.bin").c_str()) == 0);
  CHECK(ids_of(set) == Ids(100, 'a'));
}

TEST_CASE("the mask of what is scored is looked at like the tokens", "[unit]") {
  TemporaryFolder folder;
  overwrite(folder / "a.jsonl", "{\"prompt\": \"2+2=\", \"answer\": \"4\\n\"}\n");
  prepare_tokens({{folder / "a.jsonl"}, folder / "out", "byte", 0, 6, 4}, {});  // three ids a shard
  const TokenSet set = open_set(folder / "out/train");
  change_byte(folder / "out/train/00001.scored", 0, '\1');
  bool scored[3];
  set.scored(0, 3, scored);
  CHECK_THROWS_MATCHES(set.scored(3, 1, scored), DataError, Message(changed_block(folder / "out/train/00001.scored", 0, 0, 2)));
}

TEST_CASE("a raw file is looked at like a prepared one, also where its time and size were kept", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "a.bin";
  write_ids<uint16_t>(path, {1, 2, 3});
  struct stat before;
  REQUIRE(::stat(path.c_str(), &before) == 0);
  const TokenSet set = open_set(path, TokenType::uint16);
  change_byte(path, 2, 1);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  const std::string expected = changed_block(path, 0, 0, 5, path + ".quell.json");
  CHECK_THROWS_MATCHES(ids_of(set), DataError, Message(expected));
  CHECK_THROWS_MATCHES(ids_of(open_set(path, TokenType::uint16)), DataError, Message(expected));
}

TEST_CASE("a disk that cannot deliver a block is the machine's error, and the next try may succeed", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(three_shards(folder));
  {
    const CountedReads broken(EIO);
    CHECK_THROWS_MATCHES(ids_of(set, 0, 1), MachineError, Message(set.path() + "/00000.bin: cannot be read: Input/output error"));
  }
  CHECK(ids_of(set, 0, 1) == Ids{'a'});
}

TEST_CASE("the parts of a set are its files with size, time and a digest of their own", "[unit]") {
  TemporaryFolder folder;
  const std::string path = three_shards(folder);
  const std::vector<DataPart> parts = open_set(path).parts();
  REQUIRE(parts.size() == 3);
  CHECK((parts[0].name == "00000.bin" && parts[2].name == "00002.bin"));
  CHECK((parts[0].bytes == 80 && parts[2].bytes == 40));
  CHECK(parts[0].modified == files::modified(path + "/00000.bin"));
  CHECK(parts[0].digest == parts[1].digest);
  CHECK(parts[0].digest != parts[2].digest);
  CHECK(parts[0].digest.size() == 32);
  write_ids<uint16_t>(folder / "raw.bin", {1, 2, 3});
  const std::vector<DataPart> raw = open_set(folder / "raw.bin", TokenType::uint16).parts();
  CHECK((raw.size() == 1 && raw[0].name == "raw.bin" && raw[0].bytes == 6 && !raw[0].is_class));
}
