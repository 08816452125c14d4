// The processes that train together. A world of one is the same type and does nothing, so no other room ever asks whether the run is
// distributed. Copies are the same world. What ranks must agree on (a stop, a bad step, an error of one of them) they decide from
// values that are reduced here.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

#include "dist/collectives.h"

namespace quell {

class World {
 public:
  World() = default;  // a world of one
  // 0 <= rank < size, local likewise, and `collectives` not null where size > 1 (else Bug).
  World(int rank, int size, std::shared_ptr<Collectives> collectives, int local_size = 1);

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_size() const { return local_size_; }  // ranks that share this machine's cores
  bool is_first() const { return rank_ == 0; }     // the one that writes

  // In place, over all ranks; every rank must call with the same shape and type, in the same order. A tensor that is not contiguous is
  // copied there and back. Throws PeerError.
  void sum(at::Tensor& tensor) const;
  void max(at::Tensor& tensor) const;
  void broadcast(at::Tensor& tensor, int from) const;
  void barrier() const;
  // Of a contiguous tensor, which must stay untouched until wait() of what is returned has come back.
  [[nodiscard]] Pending begin_sum(const at::Tensor& tensor) const;
  // Likewise of a 1-D one that is size() equal parts (else Bug): each rank gives its own, and gets those of the others.
  [[nodiscard]] Pending begin_gather(const at::Tensor& tensor) const;

  bool any(bool here) const;
  double sum_of(double here) const;
  // The text of the lowest rank whose text is not empty, with that rank; -1 and "" where all are.
  struct Said {
    int rank = -1;
    std::string text;
  };
  Said first_said(const std::string& here) const;

 private:
  int rank_ = 0, size_ = 1, local_size_ = 1;
  std::shared_ptr<Collectives> collectives_;  // null in a world of one
};

}  // namespace quell
