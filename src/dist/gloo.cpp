// The header of ProcessGroupGloo is empty without this; the wheel's library has it.
#define USE_C10D_GLOO
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "dist/gloo.h"

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

c10::intrusive_ptr<c10d::Store> open_store(const GlooOptions& options, int size) {
  c10d::TCPStoreOptions of_store;
  of_store.port = static_cast<std::uint16_t>(options.store.port);
  of_store.isServer = options.store.serves;
  of_store.numWorkers = static_cast<size_t>(size);
  of_store.waitWorkers = false;  // finding each other waits, and says for whom
  of_store.timeout = options.timeout;
  of_store.masterListenFd = options.store.listening_fd;
  try {
    return c10::make_intrusive<c10d::TCPStore>(options.store.host, of_store);
  } catch (const std::exception& problem) {
    const std::string place = cat(options.store.host, ":", options.store.port);
    if (options.store.serves) throw MachineError(cat(place, ": rank 0 cannot listen there (is the port taken?): ", reason_of(problem)));
    throw PeerError(cat(place, ": rank 0 was not found there within ", options.timeout.count() / 1000, " s: ", reason_of(problem)));
  }
}

}  // namespace

std::shared_ptr<Collectives> join_gloo(int rank, int size, const GlooOptions& options) {
  const auto store = c10::make_intrusive<c10d::PrefixStore>(options.prefix, open_store(options, size));
  const auto of_group = c10d::ProcessGroupGloo::Options::create(options.timeout);
  return reporting("finding each other", [&] {
    of_group->devices.push_back(options.interface.empty() ? c10d::ProcessGroupGloo::createDeviceForHostname(options.address)
                                                          : c10d::ProcessGroupGloo::createDeviceForInterface(options.interface));
    return std::make_shared<Gloo>(c10::make_intrusive<c10d::ProcessGroupGloo>(store, rank, size, of_group));
  });
}

}  // namespace quell
