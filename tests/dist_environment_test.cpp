// Who a process is, by the variables that launchers set. What Slurm and Open MPI set was taken down from the real ones.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "dist/environment.h"
#include "dist/node_list.h"

namespace quell {
namespace {

using Hosts = std::vector<std::string>;

const Variables torchrun{{"RANK", "3"},        {"WORLD_SIZE", "4"},       {"LOCAL_RANK", "1"},       {"LOCAL_WORLD_SIZE", "2"},
                         {"GROUP_RANK", "1"},  {"GROUP_WORLD_SIZE", "2"}, {"MASTER_ADDR", "node7"},  {"MASTER_PORT", "29500"},
                         {"TORCHELASTIC_RUN_ID", "job"}, {"TORCHELASTIC_RESTART_COUNT", "2"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Variables slurm{{"SLURM_PROCID", "3"},    {"SLURM_LOCALID", "1"},           {"SLURM_NODEID", "1"}, {"SLURM_NTASKS", "4"},
                      {"SLURM_STEP_ID", "0"},   {"SLURM_STEP_NUM_TASKS", "4"},    {"SLURM_JOB_ID", "17"},
                      {"SLURM_STEP_NODELIST", "n[1-2]"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
const Variables open_mpi{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"PMIX_NAMESPACE", "123"}};

Variables with(Variables all, const Variables& more) {
  for (const auto& [name, value] : more) all[name] = value;
  return all;
}
Variables without(Variables all, const std::string& name) {
  all.erase(name);
  return all;
}
std::string complaint(const Variables& variables) {
  try {
    const Membership m = membership_of(variables);
    return "no complaint: " + text_of(m);
  } catch (const UsageError& problem) {
    return problem.what();
  }
}

}  // namespace

TEST_CASE("without a launcher's variables a process is a world of one", "[unit]") {
  const Membership m = membership_of({{"HOME", "/root"}, {"MASTER_ADDR", "x"}});
  CHECK((m.rank == 0 && m.size == 1 && m.launcher == "none"));
  CHECK(text_of(m) == "one process, started by no launcher");
  CHECK(membership_of({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size == 1);
}

TEST_CASE("torchrun's variables say all", "[unit]") {
  const Membership m = membership_of(torchrun);
  CHECK((m.rank == 3 && m.size == 4 && m.local_rank == 1 && m.local_size == 2 && m.node == 1 && m.nodes == 2));
  CHECK((m.host == "node7" && m.port == 29500 && m.agent_serves && m.restart == 2 && m.job == "job"));
  CHECK(text_of(m) == "rank 3 of 4 (local 1 of 2, node 1 of 2), by torchrun's variables, store at node7:29500 (the launcher's), restart 2");
  // They hold also where a batch system has started the launcher.
  CHECK(membership_of(with(torchrun, slurm)).launcher == "torchrun");
  CHECK(membership_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}).nodes == 2);
  CHECK(membership_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}, {"LOCAL_RANK", "1"}}).local_rank == 0);
}

TEST_CASE("what is no number, outside of its range or incomplete is named", "[unit]") {
  CHECK(complaint(with(torchrun, {{"RANK", "abc"}})) == "RANK=abc: must be a whole number from 0 to 1000000");
  CHECK(complaint(with(torchrun, {{"RANK", ""}})) == "RANK=: must be a whole number from 0 to 1000000");
  CHECK(complaint(with(torchrun, {{"RANK", "1x"}})) == "RANK=1x: must be a whole number from 0 to 1000000");
  CHECK(complaint(with(torchrun, {{"RANK", "-1"}})) == "RANK=-1: must be a whole number from 0 to 1000000");
  CHECK(complaint(with(torchrun, {{"RANK", "4"}})) == "RANK=4: must be below WORLD_SIZE=4");
  CHECK(complaint(with(torchrun, {{"WORLD_SIZE", "0"}})) == "WORLD_SIZE=0: must be a whole number from 1 to 1000000");
  CHECK(complaint(with(torchrun, {{"MASTER_PORT", "70000"}})) == "MASTER_PORT=70000: must be a whole number from 1 to 65535");
  CHECK(complaint(with(torchrun, {{"LOCAL_RANK", "2"}})) == "LOCAL_RANK=2: must be below LOCAL_WORLD_SIZE=2");
  CHECK(complaint(without(torchrun, "WORLD_SIZE")) ==
        "WORLD_SIZE: not set, beside RANK; all four of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are needed, or none");
  CHECK(complaint(without(torchrun, "MASTER_ADDR")) ==
        "MASTER_ADDR: not set, beside RANK; all four of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are needed, or none");
}

TEST_CASE("Slurm's step says who a task is and where the first node is", "[unit]") {
  const Membership m = membership_of(slurm);
  CHECK((m.launcher == "Slurm" && m.rank == 3 && m.size == 4 && m.local_rank == 1 && m.local_size == 2 && m.node == 1 && m.nodes == 2));
  CHECK((m.host == "n1" && m.port >= 15000 && m.port < 35000 && m.job == "17.0"));
  CHECK(membership_of(with(slurm, {{"SLURM_PROCID", "0"}, {"SLURM_NODEID", "0"}, {"SLURM_LOCALID", "0"}})).port == m.port);
  CHECK(membership_of(with(slurm, {{"SLURM_JOB_ID", "18"}})).port != m.port);
  CHECK(membership_of(with(slurm, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "4000"}})).host == "10.0.0.1");
  // In a batch script, outside of a step, a process is one; so it is where srun starts one.
  CHECK(membership_of(without(slurm, "SLURM_STEP_ID")).size == 1);
  // Left over from elsewhere, and said.
  const Membership stale = membership_of(with(slurm, {{"RANK", "0"}}));
  CHECK((stale.rank == 3 && stale.notes == Hosts{"RANK or WORLD_SIZE is set and not followed, since WORLD_SIZE, MASTER_ADDR, MASTER_PORT is not"}));
  CHECK(complaint(with(slurm, {{"SLURM_STEP_NODELIST", "n[1-"}})) == "SLURM_STEP_NODELIST=n[1-: is no list of nodes");
  CHECK(complaint(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", "4"}})) ==
        "SLURM_STEP_TASKS_PER_NODE=4: is no list of as many counts as there are nodes in n[1-2]");
}

TEST_CASE("MPI's ranks meet on their machine, or where they are told to", "[unit]") {
  const Membership m = membership_of(open_mpi);
  CHECK((m.launcher == "Open MPI" && m.rank == 1 && m.size == 2 && m.local_rank == 1 && m.nodes == 1 && m.host == "127.0.0.1" && m.port >= 15000));
  CHECK(membership_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_JOBID", "7"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}).launcher == "PMI");
  const Variables two_nodes = with(open_mpi, {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  CHECK_THAT(complaint(two_nodes), Catch::StartsWith("MASTER_ADDR: not set, and Open MPI names no host"));
  CHECK(complaint({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}) ==
        "MASTER_PORT: not set, and PMI names no job by which ranks could agree on a port");
  CHECK(membership_of(with(two_nodes, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "5"}})).node == 1);
}

TEST_CASE("launchers that contradict each other are an error, and such as agree are not", "[unit]") {
  CHECK(complaint(with(slurm, open_mpi)) ==
        "environment: rank 3 of 4 by Slurm's variables, and rank 1 of 2 by Open MPI's variables; say which holds by RANK, WORLD_SIZE, MASTER_ADDR "
        "and MASTER_PORT, or take the other's variables away");
  const Variables same{{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}};
  const Variables by_hand{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  CHECK_THAT(complaint(with(by_hand, open_mpi)), Catch::StartsWith("environment: rank 0 of 2 by torchrun's variables, and rank 1 of 2 by Open MPI's variables; "));
  CHECK(membership_of(with(by_hand, slurm)).launcher == "torchrun");  // of another size: those are of what started the launcher
  CHECK(complaint({{"OMPI_COMM_WORLD_RANK", "1"}}) == "OMPI_COMM_WORLD_SIZE: not set, though other variables of its launcher are");
  CHECK(complaint(with(torchrun, {{"MASTER_ADDR", ""}})) == "MASTER_ADDR=: must be a host");
  CHECK(membership_of(with(slurm, same)).launcher == "Slurm");
}

TEST_CASE("a node's variables make a rank where the node has one, and else need a launcher", "[unit]") {
  const Variables pet{{"PET_NNODES", "3"}, {"PET_NODE_RANK", "2"}, {"PET_NPROC_PER_NODE", "1"}, {"PET_MASTER_ADDR", "a"}, {"PET_MASTER_PORT", "5"}};
  const Membership m = membership_of(pet);
  CHECK((m.rank == 2 && m.size == 3 && m.nodes == 3 && m.host == "a" && m.port == 5));
  CHECK_THAT(complaint(with(pet, {{"PET_NPROC_PER_NODE", "8"}})), Catch::StartsWith("PET_NPROC_PER_NODE=8: these variables are for a launcher"));
  CHECK(complaint(without(pet, "PET_MASTER_PORT")) == "PET_MASTER_PORT: not set, beside PET_NNODES and PET_NODE_RANK");
}

TEST_CASE("Slurm's lists of hosts are expanded", "[unit]") {
  CHECK(*expand_hosts("n1") == Hosts{"n1"});
  CHECK(*expand_hosts("n[1-3,07],gpu2") == Hosts{"n1", "n2", "n3", "n07", "gpu2"});
  CHECK(*expand_hosts("gnode[10,20,25,37]") == Hosts{"gnode10", "gnode20", "gnode25", "gnode37"});
  CHECK(*expand_hosts("n[098-101]-ib") == Hosts{"n098-ib", "n099-ib", "n100-ib", "n101-ib"});
  CHECK(*expand_hosts("r[1-2]n[1-2]") == Hosts{"r1n1", "r1n2", "r2n1", "r2n2"});
  CHECK(*expand_hosts("a,b-c.d") == Hosts{"a", "b-c.d"});
  for (const char* wrong : {"", "n[", "n]", "n[1", "n[]", "n[2-1]", "n[1-x]", "n[[1]]", "a,,b", "n[1-200000]", "n[-1]", "n[1-99999]x[1-99999]"}) {
    CAPTURE(wrong);
    CHECK_FALSE(expand_hosts(wrong));
  }
}

TEST_CASE("Slurm's counts are expanded", "[unit]") {
  CHECK(*expand_counts("2(x2),1") == std::vector<int>{2, 2, 1});
  CHECK(*expand_counts("4") == std::vector<int>{4});
  for (const char* wrong : {"", "0", "2(x0)", "2(x", "2(2)", "x2", "2(x2", "2(x2)1", "-2", "1(x999999)"}) {
    CAPTURE(wrong);
    CHECK_FALSE(expand_counts(wrong));
  }
}

}  // namespace quell
