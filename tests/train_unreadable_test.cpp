// A disk that cannot deliver data in the middle of a run: what the run did is saved, and it goes on exactly once the disk is mended.
#include <catch2/catch.hpp>

#include <atomic>
#include <cerrno>

#include "base/error.h"
#include "resumed.h"
#include "train/session.h"

namespace quell {
namespace {

using testing::content_of;
using testing::rows_of;
using testing::tiny_config;
using testing::TinyText;

// The set in blocks so small that most steps look at one that no step before has read.
RunConfig run_on_blocks(const TinyText& text) {
  const std::string set = text.folder() / "blocks";
  prepare_tokens({.files = {text.folder() / "text.txt"}, .out = set, .tokenizer = "char", .valid = 0.1, .block_bytes = 128}, {});
  RunConfig config = testing::busy(tiny_config(text));
  testing::data_of(config).train = set + "/train";
  config.evaluate.sets = {{"valid", set + "/valid"}};
  config.checkpoint.every = 0;
  return config;
}

// From the n-th reading of a file with `part` in its path on.
class BrokenDisk {
 public:
  BrokenDisk(std::string part, int good_reads) {
    files::set_faults([this, part = std::move(part), good_reads](const char* operation, const std::string& path) {
      const bool is_read = std::string(operation) == "read" && path.find(part) != std::string::npos && path.ends_with(".bin");
      return is_read && reads_++ >= good_reads ? EIO : 0;
    });
  }
  ~BrokenDisk() { files::set_faults({}); }

 private:
  std::atomic<int> reads_{0};
};

}  // namespace

TEST_CASE("data that a disk cannot deliver end a run that is saved before, and goes on exactly", "[unit]") {
  const TinyText text;
  RunConfig config = run_on_blocks(text);
  const std::string straight = text.folder() / "straight";
  REQUIRE(run_training(config, {.folder = straight, .quiet = true}) == 0);
  struct Break {
    const char* part;
    int good_reads;
  };
  int64_t last = -1;
  for (const Break& at : {Break{"/train/", 0}, Break{"/train/", 40}, Break{"/train/", 120}, Break{"/valid/", 0}, Break{"/valid/", 4}}) {
    CAPTURE(at.part, at.good_reads);
    const std::string folder = text.folder() / cat("broken", ++last);
    config.resume = "never";
    {
      const BrokenDisk disk(at.part, at.good_reads);
      CHECK_THROWS_MATCHES(run_training(config, {.folder = folder, .quiet = true}), MachineError,
                           Catch::Predicate<MachineError>([](const MachineError& problem) {
                             const std::string what = problem.what();
                             return what.find(".bin: cannot be read: Input/output error; all up to step ") != std::string::npos &&
                                    what.ends_with("is saved: --resume goes on from there");
                           }));
    }
    config.resume = "must";
    CHECK(run_training(config, {.folder = folder, .quiet = true}) == 0);
    CHECK(rows_of(folder) == rows_of(straight));
    CHECK(content_of(folder) == content_of(straight));
  }
}

}  // namespace quell
