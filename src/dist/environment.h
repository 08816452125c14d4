// Who this process is among those that train together, from the variables that its launcher has set: torchrun's (and ours), torchrun's
// for a whole node (PET_*, as Kubernetes sets them), Slurm's, Open MPI's, PMI's; none of them: a world of one. A pure function: it asks
// nobody.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace quell {

using Variables = std::map<std::string, std::string>;
Variables variables_of_process();

struct Membership {
  std::string launcher = "none";  // "torchrun", "PET", "Slurm", "Open MPI", "PMI"
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // on this machine
  int node = 0, nodes = 1;
  std::string host = "127.0.0.1";  // of the store
  int port = 0;
  bool agent_serves = false;  // the store is the launcher's: rank 0 connects to it too
  int restart = 0;            // how often the group was started before
  std::string job;            // the launcher's name for it, "" where it has none
  std::vector<std::string> notes;  // what was seen and not followed
};

// Throws UsageError for what is incomplete, is no number, contradicts itself or another launcher's variables.
Membership membership_of(const Variables& variables);
// Its share of this machine's cores: batch systems and MPI may have bound each rank to its own already, others share all.
int cores_of(const Membership& membership);
// "rank 1 of 4 (local 1 of 2, node 0 of 2), by torchrun's variables, store at node7:29500 (the launcher's)"
std::string text_of(const Membership& membership);

}  // namespace quell
