#include "dist/environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/hash.h"
#include "base/machine.h"
#include "base/text.h"
#include "dist/node_list.h"

extern char** environ;

namespace quell {
namespace {

constexpr int most_ranks = 1'000'000;

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  bool has(const char* name) const { return variables_.contains(name); }
  bool has_all(const std::vector<const char*>& names) const { return missing(names).empty(); }
  std::vector<std::string> missing(const std::vector<const char*>& names) const {
    std::vector<std::string> none;
    for (const char* name : names) {
      if (!has(name)) none.push_back(name);
    }
    return none;
  }
  std::string text(const char* name, const std::string& absent = "") const { return has(name) ? variables_.at(name) : absent; }

  int number(const char* name, int low, int high) const {
    if (!has(name)) throw UsageError(cat(name, ": not set, though other variables of its launcher are"));
    const std::string value = text(name);
    int found = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), found);
    const bool is_one = !value.empty() && error == std::errc() && end == value.data() + value.size();
    if (!is_one || found < low || found > high) {
      throw UsageError(cat(name, "=", value, ": must be a whole number from ", low, " to ", high));
    }
    return found;
  }
  int number(const char* name, int low, int high, int absent) const { return has(name) ? number(name, low, high) : absent; }

 private:
  const Variables& variables_;
};

// Rank and size by their names in the environment.
void read_ranks(const Reader& read, Membership& m, const char* rank, const char* size) {
  m.size = read.number(size, 1, most_ranks);
  m.rank = read.number(rank, 0, most_ranks);
  if (m.rank >= m.size) throw UsageError(cat(rank, "=", m.rank, ": must be below ", size, "=", m.size));
}

void read_locals(const Reader& read, Membership& m, const char* rank, const char* size) {
  if (!read.has(size)) return;  // then a number on this machine says nothing
  m.local_size = read.number(size, 1, m.size);
  m.local_rank = read.number(rank, 0, most_ranks, 0);
  if (m.local_rank >= m.local_size) throw UsageError(cat(rank, "=", m.local_rank, ": must be below ", size, "=", m.local_size));
}

void read_store(const Reader& read, Membership& m) {
  m.host = read.text("MASTER_ADDR", m.host);
  if (read.has("MASTER_ADDR") && m.host.empty()) throw UsageError("MASTER_ADDR=: must be a host");
  m.port = read.number("MASTER_PORT", 1, 65535, m.port);
}

// Any launcher's ranks agree on such a port by the name of their job, so that jobs on one machine differ.
int port_of(const std::string& job) { return 15000 + static_cast<int>(std::stoull(xxh3_64_hex(job).substr(0, 8), nullptr, 16) % 20000); }

Membership from_torchrun(const Reader& read) {
  Membership m{.launcher = "torchrun"};
  read_ranks(read, m, "RANK", "WORLD_SIZE");
  read_locals(read, m, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  m.node = read.number("GROUP_RANK", 0, most_ranks, 0);
  m.nodes = read.number("GROUP_WORLD_SIZE", 1, most_ranks, read.has("LOCAL_WORLD_SIZE") ? (m.size + m.local_size - 1) / m.local_size : m.size);
  read_store(read, m);
  m.agent_serves = read.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  m.restart = read.number("TORCHELASTIC_RESTART_COUNT", 0, most_ranks, 0);
  m.job = read.text("TORCHELASTIC_RUN_ID");
  return m;
}

Membership from_pet(const Reader& read) {
  Membership m{.launcher = "PET"};
  const std::string each = read.text("PET_NPROC_PER_NODE", "1");
  if (each != "1") {
    throw UsageError(cat("PET_NPROC_PER_NODE=", each, ": these variables are for a launcher of several ranks on each node; start quell launch "
                         "or torchrun, which read them, or set it to 1"));
  }
  read_ranks(read, m, "PET_NODE_RANK", "PET_NNODES");
  m.node = m.rank;
  m.nodes = m.size;
  if (const auto none = read.missing({"PET_MASTER_ADDR", "PET_MASTER_PORT"}); m.size > 1 && !none.empty()) {
    throw UsageError(join(none, ", ") + ": not set, beside PET_NNODES and PET_NODE_RANK");
  }
  m.host = read.text("PET_MASTER_ADDR", m.host);
  m.port = read.number("PET_MASTER_PORT", 1, 65535, 0);
  return m;
}

Membership from_slurm(const Reader& read) {
  Membership m{.launcher = "Slurm"};
  read_ranks(read, m, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  m.local_rank = read.number("SLURM_LOCALID", 0, most_ranks, 0);
  m.node = read.number("SLURM_NODEID", 0, most_ranks, 0);
  const std::string list = read.text("SLURM_STEP_NODELIST", read.text("SLURM_JOB_NODELIST")), tasks = read.text("SLURM_STEP_TASKS_PER_NODE");
  const auto hosts = expand_hosts(list);
  if (!hosts) throw UsageError(cat("SLURM_STEP_NODELIST=", list, ": is no list of nodes"));
  const auto counts = expand_counts(tasks);
  if (!counts || counts->size() != hosts->size()) {
    throw UsageError(cat("SLURM_STEP_TASKS_PER_NODE=", tasks, ": is no list of as many counts as there are nodes in ", list));
  }
  m.nodes = static_cast<int>(hosts->size());
  if (m.node >= m.nodes) throw UsageError(cat("SLURM_NODEID=", m.node, ": the step has ", m.nodes, " nodes"));
  m.local_size = (*counts)[static_cast<size_t>(m.node)];
  m.job = cat(read.text("SLURM_JOB_ID"), ".", read.text("SLURM_STEP_ID"));
  m.restart = read.number("SLURM_RESTART_COUNT", 0, most_ranks, 0);
  m.host = m.nodes == 1 ? m.host : hosts->front();
  m.port = port_of(m.job);
  read_store(read, m);
  return m;
}

// Of MPI launchers, which name no place for the store.
Membership from_mpi(const Reader& read, const char* launcher, const char* rank, const char* size, const char* local_rank, const char* local_size,
                    const char* job) {
  Membership m{.launcher = launcher};
  read_ranks(read, m, rank, size);
  read_locals(read, m, local_rank, local_size);
  m.nodes = (m.size + m.local_size - 1) / m.local_size;
  m.node = m.rank / m.local_size;
  m.job = read.text(job);
  if (m.nodes > 1) m.host = "";
  if (!m.job.empty()) m.port = port_of(m.job);
  read_store(read, m);
  return m;
}

std::string who(const Membership& m) { return cat("rank ", m.rank, " of ", m.size, " by ", m.launcher, "'s variables"); }

}  // namespace

Variables variables_of_process() {
  Variables all;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string::npos) all[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return all;
}

Membership membership_of(const Variables& variables) {
  const Reader read(variables);
  const std::vector<const char*> of_torchrun{"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
  const bool has_all = read.has_all(of_torchrun);
  // Under an elastic launcher, which MPI or Slurm may have started, ranks are the launcher's to give.
  if (has_all && read.has("TORCHELASTIC_RUN_ID")) return from_torchrun(read);

  std::vector<Membership> found;
  if (has_all) found.push_back(from_torchrun(read));
  if (read.has_all({"PET_NODE_RANK", "PET_NNODES"})) found.push_back(from_pet(read));
  if (read.has_all({"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})) found.push_back(from_slurm(read));
  if (read.has("OMPI_COMM_WORLD_RANK")) {
    found.push_back(from_mpi(read, "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "PMIX_NAMESPACE"));
  } else if (read.has("PMI_RANK")) {
    found.push_back(from_mpi(read, "PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_JOBID"));
  }
  for (size_t i = 1; i < found.size(); ++i) {
    const bool is_same = found[i].rank == found[0].rank && found[i].size == found[0].size;
    if (is_same || (has_all && found[i].size != found[0].size)) continue;  // RANK and so on say which holds
    throw UsageError(cat("environment: ", who(found[0]), ", and ", who(found[i]), "; say which holds by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, "
                         "or take the other's variables away"));
  }
  if (!found.empty() && found[0].size > 1 && found[0].port == 0) {
    throw UsageError(cat("MASTER_PORT: not set, and ", found[0].launcher, " names no job by which ranks could agree on a port"));
  }
  const bool has_some = read.has("RANK") || read.has("WORLD_SIZE");
  if (has_some && found.empty()) {
    if (read.text("WORLD_SIZE") == "1" && read.text("RANK", "0") == "0") return {};
    throw UsageError(cat(join(read.missing(of_torchrun), ", "), ": not set, beside ", read.has("RANK") ? "RANK" : "WORLD_SIZE",
                         "; all four of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are needed, or none"));
  }
  Membership m = found.empty() ? Membership{} : found[0];
  if (m.host.empty()) {
    throw UsageError(cat("MASTER_ADDR: not set, and ", m.launcher, " names no host where ", m.nodes,
                         " nodes find each other; with mpirun: -x MASTER_ADDR=HOST_OF_RANK_0"));
  }
  if (has_some && !has_all) m.notes.push_back("RANK or WORLD_SIZE is set and not followed, since " + join(read.missing(of_torchrun), ", ") + " is not");
  return m;
}

int cores_of(const Membership& m) {
  const int here = machine::cores();
  const bool is_bound = m.launcher == "Slurm" || m.launcher == "Open MPI" || m.launcher == "PMI";
  const auto online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return is_bound ? std::min(here, std::max(1, online / m.local_size)) : std::max(1, here / m.local_size);
}

std::string text_of(const Membership& m) {
  if (m.launcher == "none") return "one process, started by no launcher";
  std::string text = cat("rank ", m.rank, " of ", m.size, " (local ", m.local_rank, " of ", m.local_size, ", node ", m.node, " of ", m.nodes, "), by ",
                         m.launcher, "'s variables");
  if (m.size > 1) text += cat(", store at ", m.host, ":", m.port, m.agent_serves ? " (the launcher's)" : " (rank 0's)");
  if (m.restart > 0) text += cat(", restart ", m.restart);
  return text;
}

}  // namespace quell
