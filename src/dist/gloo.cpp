// The header of ProcessGroupGloo is empty without this; the wheel's library has it.
#define USE_C10D_GLOO
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "dist/gloo.h"

#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"

namespace quell {
namespace {

// What went wrong, without the places in other people's sources.
std::string reason_of(const std::exception& problem) {
  const std::string text = problem.what();
  const size_t place = text.find("] ");
  const std::string rest = text.starts_with("[") && place != std::string::npos ? text.substr(place + 2) : text;
  return rest.substr(0, rest.find('\n'));
}

template <class Work>
auto reporting(const char* what, const Work& work) {
  try {
    return work();
  } catch (const Error&) {  // ours
    throw;
  } catch (const std::exception& problem) {  // gloo::IoException among others, which has no common base
    throw PeerError(cat(what, ": a peer was lost, or took too long: ", reason_of(problem)));
  }
}

class Gloo : public Collectives {
 public:
  explicit Gloo(c10::intrusive_ptr<c10d::ProcessGroupGloo> group) : group_(std::move(group)) {}

  Pending all_reduce(const at::Tensor& tensor, Reduction reduction) override {
    c10d::AllreduceOptions options;
    options.reduceOp = reduction == Reduction::sum ? c10d::ReduceOp::SUM : c10d::ReduceOp::MAX;
    return begin("sum over ranks", tensor, [&](std::vector<at::Tensor>& tensors) { return group_->allreduce(tensors, options); });
  }

  Pending broadcast(const at::Tensor& tensor, int from) override {
    c10d::BroadcastOptions options;
    options.rootRank = from;
    return begin("broadcast", tensor, [&](std::vector<at::Tensor>& tensors) { return group_->broadcast(tensors, options); });
  }

  Pending all_gather(const at::Tensor& tensor) override {
    return begin("gather from ranks", tensor, [&](std::vector<at::Tensor>& tensors) {
      at::Tensor parts = tensors[0].view({group_->getSize(), -1}), own = parts[group_->getRank()].clone();
      return group_->_allgather_base(parts, own);
    });
  }

 private:
  template <class Begin>
  static Pending begin(const char* what, const at::Tensor& tensor, const Begin& begin_work) {
    if (tensor.numel() == 0) return {[] {}};
    signals::count_collective();
    std::vector<at::Tensor> tensors{tensor.detach()};
    auto work = reporting(what, [&] { return begin_work(tensors); });
    return {[what, work = std::move(work)] { reporting(what, [&] { return work->wait(); }); }};
  }

  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
};

constexpr auto patience = std::chrono::seconds(2);  // of one try; between them a stop is obeyed, and it is said what is waited for
constexpr double first_word_seconds = 5, next_word_seconds = 30;

// Waiting that can be stopped, ends, and is not silent.
class Waiting {
 public:
  explicit Waiting(const GlooOptions& options) : options_(options) {}
  // `whom`: who is missing. Throws Stopped, PeerError.
  void look(const std::string& whom) {
    if (signals::stop_requested()) throw Stopped();
    const std::string place = cat(options_.store.host, ":", options_.store.port);
    const double limit = std::chrono::duration<double>(options_.timeout).count();
    if (since_.seconds() > limit) throw PeerError(cat(place, ": waited ", human_seconds(limit), " for ", whom, ", in vain"));
    if (since_.seconds() < next_) return;
    options_.say(cat("waiting     for ", whom, " at ", place));
    next_ = since_.seconds() + next_word_seconds;
  }

 private:
  const GlooOptions& options_;
  Timer since_;
  double next_ = first_word_seconds;
};

c10::intrusive_ptr<c10d::Store> open_store(const GlooOptions& options, int size, Waiting& waiting) {
  c10d::TCPStoreOptions of_store;
  of_store.port = static_cast<std::uint16_t>(options.store.port);
  of_store.isServer = options.store.serves;
  of_store.numWorkers = static_cast<size_t>(size);
  of_store.waitWorkers = false;  // meet() waits, and says for whom
  of_store.timeout = patience;
  of_store.masterListenFd = options.store.listening_fd;
  while (true) {
    try {
      auto store = c10::make_intrusive<c10d::TCPStore>(options.store.host, of_store);
      store->setTimeout(options.timeout);
      return store;
    } catch (const std::exception& problem) {
      if (options.store.serves) {
        throw MachineError(cat(options.store.host, ":", options.store.port, ": rank 0 cannot listen there (is the port taken?): ", reason_of(problem)));
      }
      waiting.look("the store");
    }
  }
}

std::string missing_text(c10d::Store& store, int size) {
  std::vector<std::string> missing;
  for (int rank = 0; rank < size && missing.size() < 9; ++rank) {
    if (!store.check({cat("rank", rank)})) missing.push_back(std::to_string(rank));
  }
  if (missing.size() == 9) missing.back() = "...";
  return cat(missing.size() == 1 ? "rank " : "ranks ", join(missing, ", "), " of ", size);
}

// Returns when all ranks are there.
void meet(c10d::Store& store, int rank, int size, Waiting& waiting) {
  const std::string own = std::to_string(size);
  using Bytes = std::vector<uint8_t>;
  const Bytes meant = store.compareSet("size", Bytes(), Bytes(own.begin(), own.end()));
  if (const std::string others(meant.begin(), meant.end()); others != own) {
    throw UsageError(cat("world of ", own, " ranks here and of ", others, " on another rank: all must be told the same WORLD_SIZE"));
  }
  if (store.add(cat("rank", rank), 1) > 1) throw UsageError(cat("rank ", rank, ": there is another process of this rank; each needs a RANK of its own"));
  for (store.add("here", 1); store.add("here", 0) < size; std::this_thread::sleep_for(std::chrono::milliseconds(5))) waiting.look(missing_text(store, size));
}

}  // namespace

std::shared_ptr<Collectives> join_gloo(int rank, int size, const GlooOptions& options) {
  FLAGS_caffe2_log_level = 2;  // what c10d warns of with a stack is said by us in a line
  Waiting waiting(options);
  const auto store = reporting("finding each other", [&] {
    const auto found = c10::make_intrusive<c10d::PrefixStore>(options.prefix, open_store(options, size, waiting));
    try {
      meet(*found, rank, size, waiting);
    } catch (const std::exception&) {
      if (signals::stop_requested()) throw Stopped();  // so was the rank that held the store
      throw;
    }
    return found;
  });
  const auto of_group = c10d::ProcessGroupGloo::Options::create(options.timeout);
  return reporting("finding each other", [&] {
    of_group->devices.push_back(options.interface.empty() ? c10d::ProcessGroupGloo::createDeviceForHostname(options.address)
                                                          : c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
    return std::make_shared<Gloo>(c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, of_group));
  });
}

}  // namespace quell
