#include "dist/launch.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"
#include "dist/environment.h"
#include "dist/rank_process.h"
#include "dist/signal_queue.h"
#include "dist/store_socket.h"

namespace quell {
namespace {

constexpr double end_seconds = 5;       // that the others have, once one has failed
constexpr double answer_seconds = 0.5;  // that ranks have to answer SIGQUIT
constexpr double step_seconds = 60, slow_seconds = 600;

std::string host_name() {
  char name[256] = "this machine";
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::vector<std::string> words_of(const LaunchOptions& options, bool goes_on) {
  std::vector<std::string> words;
  words.emplace_back("/proc/self/exe");
  words.emplace_back("train");
  words.insert(words.end(), options.words.begin(), options.words.end());
  if (goes_on) words.emplace_back("--set=resume=must");  // to begin anew is the user's to decide
  return words;
}

std::vector<std::string> variables_of(const LaunchOptions& options, int local, int restart, int port, int store) {
  Variables all = variables_of_process();
  for (const char* of_others : {"QUELL_STORE_FD", "QUELL_BEATS_FD"}) all.erase(of_others);
  const int rank = options.node * options.local_ranks + local, size = options.nodes * options.local_ranks;
  const auto set = [&](const char* name, const auto& value) { all[name] = cat(value); };
  for (const char* name : {"RANK", "ROLE_RANK"}) set(name, rank);
  for (const char* name : {"WORLD_SIZE", "ROLE_WORLD_SIZE"}) set(name, size);
  set("LOCAL_RANK", local);
  set("LOCAL_WORLD_SIZE", options.local_ranks);
  set("GROUP_RANK", options.node);
  set("GROUP_WORLD_SIZE", options.nodes);
  set("ROLE_NAME", "default");
  set("MASTER_ADDR", options.host.empty() ? "127.0.0.1" : options.host);
  set("MASTER_PORT", port > 0 ? cat(port) : "FREE");
  set("TORCHELASTIC_USE_AGENT_STORE", "False");
  set("TORCHELASTIC_RUN_ID", options.job);
  set("TORCHELASTIC_RESTART_COUNT", restart);
  set("TORCHELASTIC_MAX_RESTARTS", options.max_restarts);
  if (!all.contains("OMP_NUM_THREADS")) set("OMP_NUM_THREADS", std::max(1, machine::cores() / options.local_ranks));
  if (store >= 0) set("QUELL_STORE_FD", store);
  std::vector<std::string> lines;
  for (const auto& [name, value] : all) lines.push_back(cat(name, "=", value));
  return lines;
}

std::string place_text(const RankProcess& rank) {
  return cat("phase ", rank.place().phase, ", step ", rank.place().step, ", after ", rank.place().collectives, " collectives");
}

// Whether a rank that ends so has said why, and all others with it.
bool has_explained(int code) {
  for (const Exit exit : {Exit::usage, Exit::data, Exit::checkpoint, Exit::numerics, Exit::machine, Exit::stopped}) {
    if (code == static_cast<int>(exit)) return true;
  }
  return false;
}

// The ranks of one start.
class Group {
 public:
  // `goes_on`: with what an earlier start of these ranks has saved.
  Group(const LaunchOptions& options, const SignalQueue& signals, int restart, bool goes_on) : options_(options), signals_(signals) {
    if (options.node == 0) store_.emplace(options.port, /*local=*/options.nodes == 1);
    const int port = store_ ? store_->port() : options.port;
    for (int local = 0; local < options.local_ranks; ++local) {
      RankOptions rank{.rank = options.node * options.local_ranks + local, .words = words_of(options, goes_on)};
      if (rank.rank == 0) rank.inherited_fd = store_->fd();
      rank.variables = variables_of(options, local, restart, port, rank.inherited_fd);
      rank.keeps_output = rank.rank == 0 && options.log_dir.empty();
      if (!options.log_dir.empty()) rank.log = cat(options.log_dir, "/rank", rank.rank, restart > 0 ? cat(".restart", restart) : "", ".log");
      ranks_.push_back(std::make_unique<RankProcess>(rank));
    }
  }

  // Until all have ended. The code of the first that failed, but that of one which only lost a peer (6) where another says more; a rank that
  // hangs makes it 6.
  int wait() {
    while (!all_ended()) {
      look(0.1);
      if (first_) end_rest();
      else look_for_silence();
    }
    for (const auto& rank : ranks_) rank->read_output();
    return first_.value_or(0);
  }
  bool was_stopped() const { return was_stopped_; }  // by a signal to the launcher
  bool got_going() const {                           // past its start, from where on the run's folder is its own
    return std::any_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return std::string(rank->place().phase) != "start"; });
  }

 private:
  bool all_ended() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& rank) { return rank->has_ended(); });
  }

  // Waits for a short while, and takes what came.
  void look(double seconds) {
    std::vector<pollfd> waited{{signals_.fd(), POLLIN, 0}};
    for (const auto& rank : ranks_) {
      for (const int fd : {rank->output_fd(), rank->beats_fd()}) {
        if (fd >= 0) waited.push_back({fd, POLLIN, 0});
      }
    }
    ::poll(waited.data(), waited.size(), static_cast<int>(1000 * seconds));
    for (const auto& rank : ranks_) {
      rank->read_beats();
      rank->read_output();
    }
    while (const int number = signals_.next()) {
      if (number == SIGCHLD) continue;
      for (const auto& rank : ranks_) rank->signal(number);
      was_stopped_ |= number != SIGQUIT;
    }
    for (const auto& rank : ranks_) {
      if (rank->reap()) note_ending(*rank);
    }
  }

  void note_ending(const RankProcess& rank) {
    constexpr int peer = static_cast<int>(Exit::peer);
    if (rank.code() == 0 || is_hung_ || (first_ && (*first_ != peer || rank.code() == peer))) return;
    if (!first_) since_first_.restart();
    first_ = rank.code();
    if (was_stopped_ || has_explained(rank.code())) return;
    log::error(cat("launch: rank ", rank.rank(), " on ", host_name(), " ", rank.ending(), ", ", place_text(rank), ", ",
                   human_seconds(rank.silent_seconds()), " after its last sign; the others are ended"));
  }

  // The others end by themselves, since they have lost a peer. One that is saving has the time that this takes.
  void end_rest() {
    if (since_first_.seconds() < end_seconds) return;
    for (const auto& rank : ranks_) {
      const bool is_saving = std::string(rank->place().phase) == "save" && rank->silent_seconds() < limit_of(*rank);
      if (!is_saving || is_hung_) rank->signal(SIGKILL);
    }
  }

  // A first step, and what comes once, may take any time that steps do not.
  double limit_of(const RankProcess& rank) const {
    if (options_.limit_seconds > 0) return options_.limit_seconds;
    const std::string phase = rank.place().phase;
    const bool may_be_slow = phase == "start" || phase == "save" || !rank.is_warm();
    return std::max(may_be_slow ? slow_seconds : step_seconds, 10 * rank.longest_gap());
  }
  bool is_silent(const RankProcess& rank) const { return rank.has_ended() || rank.silent_seconds() > limit_of(rank); }
  bool all_silent() const {
    return !all_ended() && std::all_of(ranks_.begin(), ranks_.end(), [this](const auto& rank) { return is_silent(*rank); });
  }

  // A rank that hangs holds up the others, who wait for it in a collective: then all of them are silent, and the one is told by what the
  // kernel says of it, or by having begun fewer collectives.
  void look_for_silence() {
    if (!all_silent()) return;
    log::error(cat("launch: no sign of life. The ranks on ", host_name(), ", asked where they are:"));
    for (const auto& rank : ranks_) rank->signal(SIGQUIT);
    for (const Timer timer; timer.seconds() < answer_seconds && !all_ended();) look(0.05);
    if (first_ || !all_silent()) return;  // one has ended, or goes on
    const RankProcess* worst = nullptr;
    for (const auto& rank : ranks_) {
      const std::string state = rank->kernel_state();
      log::error(cat("  rank ", rank->rank(), ": ", place_text(*rank), ", ", human_seconds(rank->silent_seconds()), " ago; ", state.empty() ? rank->ending() : state));
      const auto behind = [](const RankProcess& r) { return std::pair(r.kernel_state().starts_with("T") ? 0 : 1, r.place().collectives); };
      if (!rank->has_ended() && (worst == nullptr || behind(*rank) < behind(*worst))) worst = rank.get();
    }
    log::error(cat("launch: rank ", worst->rank(), " on ", host_name(), " hangs: ", place_text(*worst), ", silent for ",
                   human_seconds(worst->silent_seconds()), "; all are ended"));
    first_ = static_cast<int>(Exit::peer);
    is_hung_ = true;
    for (const auto& rank : ranks_) rank->signal(SIGKILL);
  }

  const LaunchOptions& options_;
  const SignalQueue& signals_;
  std::optional<StoreSocket> store_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::optional<int> first_;
  Timer since_first_;
  bool was_stopped_ = false, is_hung_ = false;
};

// Those that a start from the last checkpoint may mend: not a mistake in a file, nor a run that was stopped as it was asked to.
bool may_be_mended(int code) {
  const auto is = [code](Exit exit) { return code == static_cast<int>(exit); };
  return code != 0 && !is(Exit::usage) && !is(Exit::data) && !is(Exit::checkpoint) && !is(Exit::numerics) && !is(Exit::stopped);
}

int show(const LaunchOptions& options) {
  const int size = options.nodes * options.local_ranks;
  std::cout << "world of " << size << " ranks, of which " << options.local_ranks << " here, on node " << options.node << " of " << options.nodes << "\n";
  const Variables before = variables_of_process();
  for (int local = 0; local < options.local_ranks; ++local) {
    for (const std::string& line : variables_of(options, local, 0, options.port, -1)) {
      const std::string name = line.substr(0, line.find('='));
      const auto found = before.find(name);
      if (found == before.end() || cat(name, "=", found->second) != line) std::cout << line << " ";
    }
    std::vector<std::string> words = words_of(options, false);
    words[0] = "quell";
    std::cout << join(words, " ") << "\n";
  }
  return 0;
}

}  // namespace

int launch(const LaunchOptions& options) {
  if (options.node >= options.nodes) throw UsageError(cat("--node-rank ", options.node, ": must be below --nnodes ", options.nodes));
  if (options.nodes > 1 && (options.host.empty() || options.port == 0)) {
    throw UsageError("--rdzv-endpoint: with several nodes all must be told the same HOST:PORT of the first one");
  }
  if (options.nodes > 1 && options.max_restarts > 0) {
    throw UsageError("--max-restarts: only on one node so far; on several let the batch system start the job again, with resume=auto");
  }
  if (options.dry_run) return show(options);
  if (options.local_ranks > machine::cores()) {
    log::warn(cat("launch: ", options.local_ranks, " ranks on ", machine::cores(), " cores: they will wait for each other"));
  }
  const SignalQueue signals;
  bool goes_on = false;
  for (int restart = 0;; ++restart) {
    Group group(options, signals, restart, goes_on);
    const int code = group.wait();
    goes_on = goes_on || group.got_going();
    if (!may_be_mended(code) || group.was_stopped() || restart >= options.max_restarts) return code;
    log::warn(cat("launch: start ", restart + 2, " of at most ", options.max_restarts + 1, goes_on ? ", from the newest checkpoint" : ""));
  }
}

}  // namespace quell
