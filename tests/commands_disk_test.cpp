// A disk that is really full: a small one of its own, in a mount namespace that goes with the shell that made it.
#include <catch2/catch.hpp>

#include <fstream>

#include "cases.h"
#include "stop_place.h"

namespace quell {
namespace {

using testing::Cases;
using testing::slurp;
using testing::StopPlace;

struct Disk {
  const char* options;  // as mount -t tmpfs -o takes them: bytes run out, or files
  bool fits;            // one checkpoint, two at most
};
constexpr Disk disks[] = {{"size=1200k", true}, {"size=64m,nr_inodes=19", true}, {"size=700k", true}, {"size=64m,nr_inodes=11", false},
                          {"size=64m,nr_inodes=14", false}, {"size=300k", false}};

}  // namespace

TEST_CASE("on a disk that is full the checkpoint before stays, nothing is said to be saved that is not, and with room the run goes on", "[slow][K6]") {
  const StopPlace place;
  files::make_folders(place / "runs");
  for (Cases cases("K6", 4, 12); cases.next();) {
    const Disk& disk = disks[cases.number() % 6];
    const char* policy = (cases.number() + cases.number() / 6) % 2 == 0 ? "continue" : "stop";
    const std::string name = cat("disk", cases.number()), run = cat(QUELL_PROGRAM, " train run.yaml --run full/run resume=auto");
    CAPTURE(disk.options, policy);
    std::ofstream(place / "disk.sh") << "mkdir -p full && mount -t tmpfs -o " << disk.options << " tmpfs full || exit 90\n"
        << run << " checkpoint.on_save_error=" << policy << " >said.txt 2>&1; echo $? >code.txt\n"
        << "ls -A full/run/checkpoints >left.txt 2>/dev/null; grep -c '^saved  ' said.txt >saved.txt\n"
        << "mount -o remount,size=64m,nr_inodes=1000 full\n"
        << QUELL_PROGRAM << " checkpoint verify full/run >verified.txt 2>&1; echo $? >verify_code.txt\n"
        << run << " >said_again.txt 2>&1; echo $? >code_again.txt\n"
        << "cp -r full/run runs/" << name << "\n";
    const int status = std::system(cat("cd ", place.path(), " && unshare --mount sh disk.sh 2>script.txt").c_str());
    INFO(slurp(place / "script.txt") << slurp(place / "said.txt") << slurp(place / "said_again.txt") << slurp(place / "left.txt"));
    REQUIRE(WEXITSTATUS(status) != 90);  // unshare and mount are needed, as root or in a user namespace
    CHECK(status == 0);
    CHECK(slurp(place / "code.txt") == "7\n");
    const std::string said = slurp(place / "said.txt"), left = slurp(place / "left.txt");
    CHECK_THAT(said, Catch::Contains("No space left on device") || Catch::Contains("a checkpoint needs"));
    // What was said to be saved is there and sound, nothing else is, and no half of one.
    CHECK(testing::count_of(left, "step-") <= 2);
    CHECK(left.find(".step-") == std::string::npos);
    CHECK((testing::count_of(left, "step-") > 0) == (slurp(place / "saved.txt") != "0\n"));
    CHECK((testing::count_of(left, "step-") > 0) == disk.fits);
    if (disk.fits) {
      CHECK(slurp(place / "verify_code.txt") == "0\n");
      CHECK(slurp(place / "code_again.txt") == "0\n");
      place.ends_as_if_nothing_had_been(name);
    } else {  // the weights are all that could be kept, and what they stand for is the user's to say
      CHECK(slurp(place / "code_again.txt") == "2\n");
      CHECK_THAT(slurp(place / "said_again.txt"), Catch::Contains("they are not written over"));
    }
  }
}

}  // namespace quell
