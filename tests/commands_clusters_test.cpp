// The program under other launchers, for real: Open MPI, and Slurm with two nodes on this machine. The same run as ours, to the bit.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "cases.h"
#include "stop_place.h"

namespace quell {
namespace {

namespace fs = std::filesystem;
using testing::Outcome;

std::string shell_quoted(const std::string& text) { return "'" + text + "'"; }

class Cluster : public testing::RunPlace {
 public:
  Cluster() : RunPlace(testing::decoder_run) {}

  // What a script says, both outputs together.
  Outcome shell(const std::string& script) const {
    std::ofstream(*this / "script.sh") << "export QUELL=" << shell_quoted(QUELL_PROGRAM) << " SOURCE=" << shell_quoted(QUELL_SOURCE) << "\n" << script << "\n";
    const int status = std::system(cat("cd ", shell_quoted(path()), " && bash script.sh > script.txt 2>&1 < /dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", testing::slurp(*this / "script.txt")};
  }
  std::string weights(const std::string& name) const { return testing::slurp(*this / ("runs/" + name + "/weights.safetensors")); }
};

}  // namespace

TEST_CASE("under Open MPI the ranks find each other and make our launcher's run", "[multi]") {
  const Cluster place;
  REQUIRE(place.run("launch --nproc-per-node 2 run.yaml").code == 0);
  const Outcome outcome = place.shell("mpirun --allow-run-as-root --oversubscribe -n 2 $QUELL train run.yaml --run runs/mpi");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("world       rank 0 of 2 (local 0 of 2, node 0 of 1), by Open MPI's variables"));
  const bool same = place.weights("mpi") == place.weights("straight");
  CHECK(same);
  const Outcome env = place.shell("mpirun --allow-run-as-root --oversubscribe -n 2 $QUELL env");
  CHECK_THAT(env.err, Catch::Contains("rank 0 of 2 ") && Catch::Contains("rank 1 of 2 "));
}

TEST_CASE("under the real torchrun the ranks make our launcher's run", "[peers][T1]") {
  REQUIRE(fs::exists(std::string(QUELL_SOURCE) + "/.peers/bin/torchrun"));  // scripts/setup --peers
  const Cluster place;
  testing::Cases cases("T1");
  REQUIRE(place.run("launch --nproc-per-node 2 run.yaml").code == 0);
  const Outcome outcome = place.shell("$SOURCE/.peers/bin/torchrun --nproc-per-node 2 --no-python -- $QUELL train run.yaml --run runs/torchrun");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("by torchrun's variables, store at ") && Catch::Contains("(the launcher's)"));
  const bool same = place.weights("torchrun") == place.weights("straight");
  CHECK(same);
  cases.add();
}

TEST_CASE("under srun on two nodes four ranks find each other and make our launcher's run", "[multi]") {
  const Cluster place;
  REQUIRE(place.run("launch --nproc-per-node 4 run.yaml").code == 0);
  // Both nodes are this machine, and their names are known to Slurm alone.
  const Outcome outcome = place.shell("MASTER_ADDR=127.0.0.1 $SOURCE/tests/with_slurm srun -N2 -n4 --ntasks-per-node=2 $QUELL train run.yaml --run runs/slurm");
  INFO(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("world       rank 0 of 4 (local 0 of 2, node 0 of 2), by Slurm's variables"));
  const bool same = place.weights("slurm") == place.weights("straight");
  CHECK(same);
}

TEST_CASE("a job that runs out of its time saves, goes back into Slurm's queue and goes on exactly", "[multi]") {
  const Cluster place;
  REQUIRE(place.run("launch --nproc-per-node 2 run.yaml steps=400").code == 0);
  std::ofstream(place / "job.sh") << R"sh(
job=$(sbatch --parsable --nodes 2 --ntasks-per-node 1 --output job.log "$SOURCE/scripts/slurm/train.sbatch" run.yaml --run runs/job steps=400)
until [ "$(grep -c loss runs/job/metrics.jsonl 2>/dev/null)" -ge 5 ] 2>/dev/null; do
  squeue -h -j "$job" | grep -q . || break
  sleep 0.05
done
scancel --signal=USR1 "$job"   # as --signal does before the time limit
# A job that is put back waits for two minutes, unless it is told to start now.
while squeue -h -j "$job" 2>/dev/null | grep -q .; do
  scontrol update JobId="$job" StartTime=now >/dev/null 2>&1
  sleep 0.2
done
cat job.log
)sh";
  const Outcome outcome = place.shell("MASTER_ADDR=127.0.0.1 $SOURCE/tests/with_slurm bash job.sh");
  INFO(outcome.err);
  CHECK_THAT(outcome.err, Catch::Contains("stopped with a checkpoint: back into the queue") && Catch::Contains("restart 1") && Catch::Contains("finished after step 400"));
  const bool same = place.weights("job") == place.weights("straight");
  CHECK(same);
}

}  // namespace quell
