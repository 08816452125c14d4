#include "dist/same.h"

#include <ATen/ATen.h>

#include <map>

#include "base/hash.h"
#include "base/text.h"

namespace quell {
namespace {

int64_t hash_of(const at::Tensor& tensor) {
  const at::Tensor whole = tensor.detach().contiguous().cpu();
  const std::string hex = xxh3_64_hex({static_cast<const char*>(whole.const_data_ptr()), whole.nbytes()});
  return static_cast<int64_t>(std::stoull(hex, nullptr, 16));
}

// The hashes of one tensor by rank.
std::vector<int64_t> gather(const World& world, int64_t own) {
  at::Tensor all = at::zeros({world.size()}, at::kLong);
  all[world.rank()] = own;
  world.sum(all);
  return {all.const_data_ptr<int64_t>(), all.const_data_ptr<int64_t>() + all.numel()};
}

std::vector<int> odd_ones(const std::vector<int64_t>& hashes) {
  std::map<int64_t, size_t> votes;
  for (const int64_t hash : hashes) ++votes[hash];
  std::vector<int> odd;
  for (size_t rank = 0; rank < hashes.size(); ++rank) {
    if (2 * votes[hashes[rank]] <= hashes.size()) odd.push_back(static_cast<int>(rank));
  }
  return odd;
}

}  // namespace

std::optional<Difference> first_difference(const World& world, const State& state) {
  if (world.size() == 1) return std::nullopt;
  std::vector<std::string> names;
  std::vector<int64_t> hashes;
  for (const auto& [name, tensor] : state.tensors) {
    names.push_back(name);
    hashes.push_back(hash_of(tensor));
  }
  const at::Tensor own = at::tensor(hashes, at::kLong);
  // Where the largest and the smallest are the same, all are. The complement turns the order round without overflow.
  at::Tensor bounds = at::stack({own, own.bitwise_not()});
  world.max(bounds);
  const at::Tensor differs = bounds[0].ne(bounds[1].bitwise_not()).nonzero();
  if (differs.numel() == 0) return std::nullopt;
  const auto first = static_cast<size_t>(differs[0][0].item<int64_t>());
  return Difference{names[first], odd_ones(gather(world, hashes[first]))};
}

std::string text_of(const Difference& difference) {
  std::vector<std::string> ranks;
  for (const int rank : difference.ranks) ranks.push_back(std::to_string(rank));
  return cat(difference.tensor, ": is not the same on all ranks; ", ranks.size() == 1 ? "the odd one is rank " : "they differ on ranks ", join(ranks, ", "));
}

}  // namespace quell
