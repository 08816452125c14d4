// Files on a good disk. Failing disks: base_faults_test.cpp.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/lock.h"
#include "temporary.h"

using namespace quell;
using Catch::Message;
using quell::testing::TemporaryFolder;

TEST_CASE("what is written is read back, and replaces what was there", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "a.txt";
  CHECK_FALSE(files::exists(path));
  files::write_atomically(path, "old");
  files::write_atomically(path, std::string_view("new\0text", 8));
  CHECK(files::exists(path));
  CHECK(files::size(path) == 8);
  CHECK(files::read(path) == std::string("new\0text", 8));
  CHECK(files::list(folder.path()) == std::vector<std::string>{"a.txt"});
}

TEST_CASE("a new file has the permissions of the umask", "[unit]") {
  TemporaryFolder folder;
  const mode_t old = umask(027);
  files::write_atomically(folder / "a", "x");
  umask(old);
  struct stat found;
  REQUIRE(stat((folder / "a").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0640);
}

TEST_CASE("a file larger than the limit is an error, also where its size is not told", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(folder / "a", "12345");
  CHECK(files::read(folder / "a", 5) == "12345");
  CHECK_THROWS_MATCHES(files::read(folder / "a", 4), MachineError,
                       Message((folder / "a") + ": larger than the 4 bytes that are allowed here"));
  CHECK(files::read("/proc/self/status").size() > 100);
  CHECK_THROWS_AS(files::read("/dev/zero", 1000000), MachineError);
}

TEST_CASE("errors of files name the path and the system's reason", "[unit]") {
  TemporaryFolder folder;
  const std::string gone = folder / "gone";
  CHECK_THROWS_MATCHES(files::read(gone), MachineError, Message(gone + ": cannot be opened: No such file or directory"));
  CHECK_THROWS_MATCHES(files::size(gone), MachineError, Message(gone + ": cannot be examined: No such file or directory"));
  CHECK_THROWS_MATCHES(files::list(gone), MachineError, Message(gone + ": cannot be listed: No such file or directory"));
  CHECK_THROWS_MATCHES(files::Mapping(gone), MachineError, Message(gone + ": cannot be opened: No such file or directory"));
  CHECK_THROWS_MATCHES(files::Mapping(folder.path()), MachineError,
                       Message(folder.path() + ": cannot be mapped: not a regular file"));
  CHECK_THROWS_MATCHES(files::read(folder.path()), MachineError, Message(folder.path() + ": cannot be read: Is a directory"));
  CHECK_THROWS_MATCHES(files::Output(gone + "/a"), MachineError,
                       Message(gone + "/a: cannot be created: No such file or directory"));
  CHECK_THROWS_MATCHES(files::Appender(gone + "/a"), MachineError,
                       Message(gone + "/a: cannot be opened for appending: No such file or directory"));
  files::write_atomically(folder / "file", "");
  CHECK_THROWS_MATCHES(files::make_folders(folder / "file/sub"), MachineError,
                       Message((folder / "file") + ": cannot be made: Not a directory"));
}

TEST_CASE("folders are made with their parents, and a new one only once", "[unit]") {
  TemporaryFolder folder;
  files::make_folders(folder / "a/b/c/");
  files::make_folders(folder / "a/b/c");
  CHECK(files::is_folder(folder / "a/b/c"));
  CHECK(files::make_new_folder(folder / "x/y"));
  CHECK_FALSE(files::make_new_folder(folder / "x/y"));
  files::write_atomically(folder / "x/file", "");
  CHECK_FALSE(files::is_folder(folder / "x/file"));
  CHECK(files::list(folder / "x") == std::vector<std::string>{"file", "y"});
}

TEST_CASE("a rename to a new name never replaces", "[unit]") {
  TemporaryFolder folder;
  files::make_folders(folder / "from");
  files::write_atomically(folder / "from/a", "x");
  files::make_folders(folder / "taken");
  CHECK_FALSE(files::rename_new(folder / "from", folder / "taken"));
  CHECK(files::rename_new(folder / "from", folder / "free"));
  CHECK(files::read(folder / "free/a") == "x");
  CHECK_FALSE(files::exists(folder / "from"));
  CHECK_THROWS_MATCHES(files::rename_new(folder / "gone", folder / "new"), MachineError,
                       Message((folder / "new") + ": cannot be renamed into place: No such file or directory"));
}

TEST_CASE("removing takes a folder with all in it and follows no link", "[unit]") {
  TemporaryFolder folder;
  files::make_folders(folder / "a/b");
  files::write_atomically(folder / "a/b/file", "x");
  files::make_folders(folder / "kept");
  files::write_atomically(folder / "kept/file", "x");
  REQUIRE(symlink((folder / "kept").c_str(), (folder / "a/link").c_str()) == 0);
  files::remove_all(folder / "a");
  files::remove_all(folder / "a");
  CHECK(files::list(folder.path()) == std::vector<std::string>{"kept"});
  CHECK(files::read(folder / "kept/file") == "x");
}

TEST_CASE("an output appears on commit and leaves nothing without it", "[unit]") {
  TemporaryFolder folder;
  {
    files::Output output(folder / "a");
    output.write("12", 2);
    CHECK_FALSE(files::exists(folder / "a"));
    output.write("3", 1);
    output.commit();
    CHECK(files::read(folder / "a") == "123");
    CHECK_THROWS_AS(output.write("4", 1), Bug);
    CHECK_THROWS_AS(output.commit(), Bug);
  }
  {
    files::Output dropped(folder / "a");
    dropped.write("lost", 4);
  }
  CHECK(files::read(folder / "a") == "123");
  CHECK(files::list(folder.path()) == std::vector<std::string>{"a"});
}

TEST_CASE("two outputs of one name do not meet", "[unit]") {
  TemporaryFolder folder;
  files::Output one(folder / "a"), two(folder / "a");
  one.write("one", 3);
  two.write("two", 3);
  one.commit();
  two.commit();
  CHECK(files::read(folder / "a") == "two");
}

TEST_CASE("an appender adds lines to what is there", "[unit]") {
  TemporaryFolder folder;
  files::Appender(folder / "log").write_line("one");
  files::Appender again(folder / "log");
  again.write_line("two");
  again.write_line("");
  CHECK(files::read(folder / "log") == "one\ntwo\n\n");
}

TEST_CASE("a mapping shows a file's bytes and can be moved", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(folder / "a", "abc");
  files::write_atomically(folder / "empty", "");
  files::Mapping first(folder / "a");
  files::Mapping second(std::move(first));
  CHECK(first.bytes().empty());
  REQUIRE(second.bytes().size() == 3);
  CHECK(std::memcmp(second.bytes().data(), "abc", 3) == 0);
  files::Mapping third;
  third = std::move(second);
  CHECK(third.bytes().size() == 3);
  CHECK(files::Mapping(folder / "empty").bytes().empty());
}

TEST_CASE("a mapping knows its file from another that took its name, and reads what it has now", "[unit]") {
  TemporaryFolder folder;
  files::write_atomically(folder / "a", "abcdef");
  files::Mapping first(folder / "a"), moved(std::move(first));
  std::string read;
  const auto take = [&](std::string_view piece) { read += piece; };
  CHECK(moved.size_at(folder / "a") == 6);
  CHECK((moved.read_pieces_at(folder / "a", 1, 4, take) == 4 && read == "bcde"));
  REQUIRE(::truncate((folder / "a").c_str(), 3) == 0);
  read.clear();
  CHECK(moved.size_at(folder / "a") == 3);
  CHECK((moved.read_pieces_at(folder / "a", 1, 4, take) == 2 && read == "bc"));
  CHECK(moved.read_pieces_at(folder / "a", 3, 4, take) == 0);
  files::write_atomically(folder / "a", "abcdef");
  read.clear();
  for (const char* other : {"a", "gone"}) {
    CHECK_FALSE(moved.size_at(folder / other));
    CHECK_FALSE(moved.read_pieces_at(folder / other, 0, 1, take));
  }
  CHECK(read.empty());
  files::set_faults([](const char*, const std::string&) { return EIO; });
  CHECK_THROWS_AS(moved.read_pieces_at(folder / "a", 0, 1, take), MachineError);
  files::set_faults({});
}

TEST_CASE("a lock is seen while its owner lives and is taken over afterwards", "[unit]") {
  TemporaryFolder folder;
  const std::string path = folder / "lock";
  CHECK_FALSE(files::Lock::take_over(path));  // not there
  CHECK_FALSE(files::exists(path));
  {
    const auto lock = files::Lock::make(path);
    REQUIRE(lock);
    CHECK_FALSE(files::Lock::make(path));
    CHECK_FALSE(files::Lock::take_over(path));
  }
  CHECK(files::exists(path));
  CHECK_FALSE(files::Lock::make(path));
  auto taken = files::Lock::take_over(path);
  REQUIRE(taken);
  const files::Lock moved = std::move(*taken);
  taken.reset();
  CHECK_FALSE(files::Lock::take_over(path));
  CHECK_THROWS_MATCHES(files::Lock::make(folder / "lock/inside"), MachineError,
                       Message((folder / "lock/inside") + ": cannot be created: Not a directory"));
}
