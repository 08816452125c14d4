// In a world of one the arguments are checked as they are in a larger one, and nothing moves.
#include "dist/world.h"

#include <ATen/ATen.h>

#include <cstring>

#include "base/error.h"

namespace quell {
namespace {

// Runs `work` on a contiguous tensor that stands for this one.
template <class Work>
void in_place(at::Tensor& tensor, const Work& work) {
  if (tensor.is_contiguous()) return work(tensor);
  at::Tensor whole = tensor.contiguous();
  work(whole);
  tensor.copy_(whole);
}

}  // namespace

World::World(int rank, int size, std::shared_ptr<Collectives> collectives, int local_size)
    : rank_(rank), size_(size), local_size_(local_size), collectives_(std::move(collectives)) {
  require(rank >= 0 && rank < size && local_size >= 1, "world: a rank outside of it");
  require(size == 1 || collectives_ != nullptr, "world: several ranks and nothing between them");
}

Pending World::begin_sum(const at::Tensor& tensor) const {
  require(tensor.defined() && tensor.is_contiguous(), "world: sum of a tensor that is not defined or not contiguous");
  return size_ == 1 ? Pending{[] {}} : collectives_->all_reduce(tensor, Reduction::sum);
}

Pending World::begin_gather(const at::Tensor& tensor) const {
  require(tensor.defined() && tensor.is_contiguous() && tensor.dim() == 1 && tensor.numel() % size_ == 0, "world: gathers into a tensor that is not one part a rank");
  return size_ == 1 ? Pending{[] {}} : collectives_->all_gather(tensor);
}

void World::sum(at::Tensor& tensor) const {
  require(tensor.defined(), "world: sum of an undefined tensor");
  if (size_ == 1) return;
  in_place(tensor, [&](const at::Tensor& whole) { collectives_->all_reduce(whole, Reduction::sum).wait(); });
}

void World::max(at::Tensor& tensor) const {
  require(tensor.defined(), "world: max of an undefined tensor");
  if (size_ == 1) return;
  in_place(tensor, [&](const at::Tensor& whole) { collectives_->all_reduce(whole, Reduction::max).wait(); });
}

void World::broadcast(at::Tensor& tensor, int from) const {
  require(tensor.defined(), "world: broadcast of an undefined tensor");
  require(from >= 0 && from < size(), "world: broadcast from a rank that does not exist");
  if (size_ == 1) return;
  in_place(tensor, [&](const at::Tensor& whole) { collectives_->broadcast(whole, from).wait(); });
}

void World::barrier() const { any(false); }

bool World::any(bool here) const {
  at::Tensor flag = at::full({1}, here ? 1 : 0, at::kLong);
  max(flag);
  return flag.item<int64_t>() != 0;
}

double World::sum_of(double here) const {
  at::Tensor sum = at::full({1}, here, at::kDouble);
  this->sum(sum);
  return sum.item<double>();
}

World::Said World::first_said(const std::string& here) const {
  // The lowest rank is the largest of (size - rank), and 0 says nothing.
  at::Tensor who = at::full({1}, here.empty() ? 0 : size_ - rank_, at::kLong);
  max(who);
  if (who.item<int64_t>() == 0) return {};
  Said said{size_ - static_cast<int>(who.item<int64_t>()), here};
  at::Tensor length = at::full({1}, static_cast<int64_t>(here.size()), at::kLong);
  broadcast(length, said.rank);
  at::Tensor bytes = at::zeros({length.item<int64_t>()}, at::kByte);
  if (rank_ == said.rank) std::memcpy(bytes.data_ptr(), here.data(), here.size());
  broadcast(bytes, said.rank);
  said.text.assign(static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel()));
  return said;
}

}  // namespace quell
