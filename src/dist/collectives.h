// What moves tensors between ranks. A world has one; it is implemented over c10d (gloo.cpp), and tests put their own in between.
// Every rank must begin the same operations with the same shapes and types in the same order, from one thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace quell {

enum class Reduction { sum, max };

// An operation under way: its tensor may be used again when wait() has returned. Every one must be waited for, once.
struct Pending {
  std::function<void()> wait;
};

class Collectives {
 public:
  virtual ~Collectives() = default;
  // In place; contiguous tensors of a floating-point type, kLong or kByte. These throw PeerError where a peer was lost or nothing moved for the
  // world's timeout, at once or from wait().
  virtual Pending all_reduce(const at::Tensor& tensor, Reduction reduction) = 0;
  virtual Pending broadcast(const at::Tensor& tensor, int from) = 0;
  // The tensor is as many equal parts as there are ranks, each of which gives its own and gets those of the others.
  virtual Pending all_gather(const at::Tensor& tensor) = 0;
};

}  // namespace quell
