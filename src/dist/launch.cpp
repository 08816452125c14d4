#include "dist/launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
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

namespace quell {
namespace {

constexpr double end_seconds = 5;    // that the others have, once one has failed
constexpr double answer_seconds = 1; // that ranks have to answer SIGQUIT
constexpr double step_seconds = 60, slow_seconds = 600;

std::string host_name() {
  char name[256] = "this machine";
  ::gethostname(name, sizeof name - 1);
  return name;
}

// The store's socket, which rank 0 inherits: nobody can take the port between the choice and the start.
class StoreSocket {
 public:
  explicit StoreSocket(int port) : socket_(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    address.sin6_addr = in6addr_any;
    socklen_t length = sizeof address;
    const int yes = 1;
    ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const bool listens = socket_ >= 0 && ::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(socket_, 1024) == 0 &&
                         ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &length) == 0;
    if (!listens) throw MachineError(cat("launch: cannot listen on port ", port, ": ", std::strerror(errno), "; choose another by --master-port"));
    port_ = ntohs(address.sin6_port);
  }
  ~StoreSocket() { ::close(socket_); }
  StoreSocket(const StoreSocket&) = delete;
  StoreSocket& operator=(const StoreSocket&) = delete;
  int fd() const { return socket_; }
  int port() const { return port_; }

 private:
  int socket_, port_ = 0;
};

// Signals as something to wait on, beside pipes.
class SignalQueue {
 public:
  SignalQueue() {
    sigemptyset(&wanted_);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGCHLD}) {
      struct sigaction now = {};
      sigaction(number, nullptr, &now);
      if (now.sa_handler != SIG_IGN || number == SIGCHLD) sigaddset(&wanted_, number);  // under nohup a hang-up stays ignored
    }
    sigprocmask(SIG_BLOCK, &wanted_, &before_);
    queue_ = ::signalfd(-1, &wanted_, SFD_CLOEXEC | SFD_NONBLOCK);
    if (queue_ < 0) throw MachineError(cat("launch: no signalfd: ", std::strerror(errno)));
  }
  ~SignalQueue() {
    ::close(queue_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;
  int fd() const { return queue_; }
  // 0 where none has come.
  int next() const {
    signalfd_siginfo info;
    return ::read(queue_, &info, sizeof info) == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
  }

 private:
  sigset_t wanted_, before_;
  int queue_ = -1;
};

std::vector<std::string> words_of(const LaunchOptions& options, int restart) {
  std::vector<std::string> words;
  words.emplace_back("/proc/self/exe");
  words.emplace_back("train");
  words.insert(words.end(), options.words.begin(), options.words.end());
  if (restart > 0) words.emplace_back("--set=resume=auto");  // from the newest sound checkpoint, if there is one yet
  return words;
}

std::vector<std::string> variables_of(const LaunchOptions& options, int local, int restart, int port, int store) {
  Variables all = variables_of_process();
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

// The ranks of one start.
class Group {
 public:
  Group(const LaunchOptions& options, const SignalQueue& signals, int restart) : options_(options), signals_(signals) {
    if (options.node == 0) store_.emplace(options.port);
    const int port = store_ ? store_->port() : options.port;
    for (int local = 0; local < options.local_ranks; ++local) {
      RankOptions rank{.rank = options.node * options.local_ranks + local, .words = words_of(options, restart)};
      if (rank.rank == 0) rank.inherited_fd = store_->fd();
      rank.variables = variables_of(options, local, restart, port, rank.inherited_fd);
      rank.keeps_output = rank.rank == 0 && options.log_dir.empty();
      if (!options.log_dir.empty()) rank.log = cat(options.log_dir, "/rank", rank.rank, restart > 0 ? cat(".restart", restart) : "", ".log");
      ranks_.push_back(std::make_unique<RankProcess>(rank));
    }
  }

  // Until all have ended. The first code that is not 0, by time; a rank that hangs makes it 6.
  int wait() {
    while (!all_ended()) {
      look(0.1);
      if (first_ && since_first_.seconds() > end_seconds) kill_rest();
      if (!first_) look_for_silence();
    }
    for (const auto& rank : ranks_) rank->read_output();
    return first_.value_or(0);
  }
  bool was_stopped() const { return was_stopped_; }  // by a signal to the launcher

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
    if (rank.code() == 0 || first_) return;
    first_ = rank.code();
    since_first_.restart();
    if (was_stopped_ || rank.code() == static_cast<int>(Exit::stopped)) return;  // as it was asked to
    log::error(cat("launch: rank ", rank.rank(), " on ", host_name(), " ", rank.ending(), ", ", place_text(rank), ", ",
                   human_seconds(rank.silent_seconds()), " after its last sign; the others are ended"));
  }

  void kill_rest() {
    for (const auto& rank : ranks_) rank->signal(SIGKILL);
  }

  double limit_of(const RankProcess& rank) const {
    if (options_.limit_seconds > 0) return options_.limit_seconds;
    const std::string phase = rank.place().phase;
    const bool may_be_slow = phase == "start" || phase == "save";
    return std::max(may_be_slow ? slow_seconds : step_seconds, 10 * rank.longest_gap());
  }

  // A rank that hangs holds up the others, who wait for it in a collective: all of them are silent, and the one is told by what the kernel
  // says of it, by not answering, or by having begun fewer collectives.
  void look_for_silence() {
    const auto is_silent = [&](const auto& rank) { return !rank->has_ended() && rank->silent_seconds() > limit_of(*rank); };
    if (std::none_of(ranks_.begin(), ranks_.end(), is_silent)) return;
    log::error(cat("launch: no sign of life for ", human_seconds(ranks_.front()->silent_seconds()), ". The ranks of ", host_name(), ", asked where they are:"));
    for (const auto& rank : ranks_) rank->signal(SIGQUIT);
    for (const Timer timer; timer.seconds() < answer_seconds && !all_ended();) look(0.05);
    const RankProcess* worst = nullptr;
    for (const auto& rank : ranks_) {
      const std::string state = rank->kernel_state();
      log::error(cat("  rank ", rank->rank(), ": ", place_text(*rank), ", ", human_seconds(rank->silent_seconds()), " ago; ", state.empty() ? rank->ending() : state));
      const auto behind = [](const RankProcess& r) { return std::pair(r.kernel_state().starts_with("T") ? 0 : 1, r.place().collectives); };
      if (worst == nullptr || behind(*rank) < behind(*worst)) worst = rank.get();
    }
    log::error(cat("launch: rank ", worst->rank(), " on ", host_name(), " hangs: ", place_text(*worst), ", silent for ",
                   human_seconds(worst->silent_seconds()), "; all are ended"));
    first_ = static_cast<int>(Exit::peer);
    since_first_.restart();
    kill_rest();
  }

  const LaunchOptions& options_;
  const SignalQueue& signals_;
  std::optional<StoreSocket> store_;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::optional<int> first_;
  Timer since_first_;
  bool was_stopped_ = false;
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
    std::vector<std::string> words = words_of(options, 0);
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
  if (options.dry_run) return show(options);
  if (options.local_ranks > machine::cores()) {
    log::warn(cat("launch: ", options.local_ranks, " ranks on ", machine::cores(), " cores: they will wait for each other"));
  }
  const SignalQueue signals;
  for (int restart = 0;; ++restart) {
    Group group(options, signals, restart);
    const int code = group.wait();
    if (!may_be_mended(code) || group.was_stopped() || restart >= options.max_restarts) return code;
    log::warn(cat("launch: start ", restart + 2, " of at most ", options.max_restarts + 1, ", from the newest checkpoint"));
  }
}

}  // namespace quell
