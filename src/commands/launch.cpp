// quell launch [--nproc-per-node N] [...] FILE [key=value...]
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"
#include "commands/commands.h"
#include "dist/launch.h"

namespace quell {
namespace {

// torchrun's spellings, with hyphens and with underscores.
std::string both(const std::string& name) {
  std::string underscored = name;
  for (size_t i = 2; i < underscored.size(); ++i) {
    if (underscored[i] == '-') underscored[i] = '_';
  }
  return underscored == name ? name : name + "," + underscored;
}

struct Arguments {
  LaunchOptions options;
  std::string ranks, endpoint;
  bool standalone = false;  // these two are there for scripts that were written for torchrun
  std::string backend;
};

void take_endpoint(LaunchOptions& options, const std::string& endpoint) {
  const size_t colon = endpoint.rfind(':');
  const std::string port = colon == std::string::npos ? "29500" : endpoint.substr(colon + 1);
  const bool is_number = !port.empty() && port.size() < 6 && port.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || std::stoi(port) < 1 || std::stoi(port) > 65535) throw UsageError(cat("--rdzv-endpoint ", endpoint, ": must be HOST:PORT"));
  options.host = endpoint.substr(0, colon);
  options.port = std::stoi(port);
}

int ranks_of(const std::string& text) {
  if (text == "auto" || text == "cpu") return machine::cores();
  const bool is_number = !text.empty() && text.size() < 5 && text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || std::stoi(text) < 1) throw UsageError(cat("--nproc-per-node ", text, ": must be a number from 1 to 9999, or auto"));
  return std::stoi(text);
}

void make_log_dir(const std::string& path) {
  std::error_code problem;
  if (!path.empty()) std::filesystem::create_directories(path, problem);
  if (problem) throw MachineError(cat("--log-dir ", path, ": cannot be made: ", problem.message()));
}

}  // namespace

void add_launch(CLI::App& program, Action& chosen) {
  auto args = std::make_shared<Arguments>();
  LaunchOptions& options = args->options;
  CLI::App* command = program.add_subcommand("launch", "Train in several ranks on this machine, or on this node of several");
  command->add_option(both("--nproc-per-node"), args->ranks, "Ranks on this machine; auto: one a core")->type_name("N")->envname("PET_NPROC_PER_NODE");
  command->add_option("--nnodes", options.nodes, "Machines")->type_name("N")->envname("PET_NNODES")->check(CLI::Range(1, 1'000'000).description(""))->capture_default_str();
  command->add_option(both("--node-rank"), options.node, "Which of them this is, from 0")->type_name("N")->envname("PET_NODE_RANK")->check(CLI::Range(0, 1'000'000).description(""))->capture_default_str();
  command->add_option(both("--rdzv-endpoint"), args->endpoint, "Where the first machine can be reached")->type_name("HOST:PORT")->envname("PET_RDZV_ENDPOINT");
  command->add_option(both("--master-addr"), options.host, "The same, its host")->type_name("HOST")->envname("PET_MASTER_ADDR");
  command->add_option(both("--master-port"), options.port, "and its port (default: a free one, on one machine)")->type_name("PORT")->envname("PET_MASTER_PORT")->check(CLI::Range(1, 65535).description(""));
  command->add_option(both("--rdzv-id"), options.job, "A name for the job, the same on all machines")->type_name("NAME")->envname("PET_RDZV_ID")->capture_default_str();
  command->add_option(both("--max-restarts"), options.max_restarts, "How often all ranks may be started again after one has failed")
      ->type_name("N")->envname("PET_MAX_RESTARTS")->check(CLI::Range(0, 1'000'000).description(""))->capture_default_str();
  command->add_option(both("--log-dir"), options.log_dir, "A folder for what each rank says")->type_name("DIR")->envname("PET_LOG_DIR");
  command->add_flag("--standalone", args->standalone, "As torchrun spells it: one machine, which is the default");
  command->add_option(both("--rdzv-backend"), args->backend, "As torchrun spells it")->type_name("NAME")->check(CLI::IsMember({"c10d", "static"}));
  command->add_option("--limit", options.limit_seconds, "Seconds without a sign of life after which a rank hangs (default: by what it does)")
      ->type_name("S")->check(CLI::Range(0.1, 1e6).description(""));
  command->add_flag(both("--dry-run"), options.dry_run, "Only print what would be started");
  command->prefix_command();
  command->callback([args, command, &chosen] {
    chosen = [args, command] {
      LaunchOptions wanted = args->options;
      if (!args->ranks.empty()) wanted.local_ranks = ranks_of(args->ranks);
      if (!args->endpoint.empty()) take_endpoint(wanted, args->endpoint);
      wanted.words = command->remaining();
      if (wanted.words.empty()) throw UsageError("launch: which run file? quell launch --nproc-per-node 2 FILE, as after quell train");
      if (wanted.words.front().starts_with("-")) throw UsageError(wanted.words.front() + ": no such option of launch; what is meant for quell train stands behind the run file");
      make_log_dir(wanted.log_dir);
      return launch(wanted);
    };
  });
}

}  // namespace quell
