// A training step in numbers: the operations of this room as they take step memory, by what each one makes, what it saves for its
// backward and what that makes. Tensors have a size and nothing else. The order of events is autograd's: the latest node first, what
// a node saved freed after it has run, gradients that meet added in place where nobody else holds them.
#pragma once

#include <functional>
#include <vector>

#include "ops/options.h"
#include "tensors/ledger.h"

namespace quell::ops {

struct Sized {
  Ledger::Memory memory;
  double count = 0;  // elements
  int64_t node = -1; // what made it; -1: no gradient flows to it
  // Of the whole memory: of a view that is a part, what it looks at is `count`.
  double bytes() const { return static_cast<double>(memory->requested); }
};

struct TapeOptions {
  double storage = 4;  // bytes of a value: 4, 2 under bf16, 8 under fp64
  double exact = 4;    // of what is computed wider: 4, 8 under fp64
  bool twins = false;  // the readable twins run
  double threads = 1;
};

class Tape {
 public:
  using Gradients = std::vector<Ledger::Memory>;  // one an input; null where it wants none
  using Backward = std::function<Gradients(const Ledger::Memory& gradient)>;

  Tape(Ledger& ledger, const TapeOptions& options) : ledger_(ledger), options_(options) {}
  const TapeOptions& options() const { return options_; }
  Ledger::Memory make(double bytes) { return ledger_.make(bytes); }
  // A tensor that nothing made, like a batch.
  Sized input(double count, double bytes) { return {make(bytes), count, -1}; }

  // While nothing that was used so far is trained, nothing is recorded, as autograd does; from `begin_training` on everything is.
  void begin_training() { training_ = true; }
  // `backward` holds what is saved. It is dropped where no gradient is wanted.
  Sized record(Ledger::Memory out, double count, const std::vector<const Sized*>& inputs, Backward backward);
  void backward(const Sized& root);  // frees the tape's nodes

  double saved_scores() const { return saved_scores_; }  // bytes of matrices of attention scores
  void count_saved_scores(double bytes) { saved_scores_ += training_ ? bytes : 0; }

 private:
  struct Node {
    std::vector<int64_t> inputs;
    Backward backward;
    Ledger::Memory gradient;
  };
  void accumulate(int64_t node, Ledger::Memory gradient);

  Ledger& ledger_;
  TapeOptions options_;
  bool training_ = false;
  double saved_scores_ = 0;
  std::vector<Node> nodes_;
};

// LibTorch's own operations one element at a time. What they save is `saved` (and their result, where that is asked for).
struct Elementwise {
  std::vector<Ledger::Memory> saved = {};
  bool saves_result = false;
  bool passes = false;  // the gradient goes on as it is: +, -
};
Sized elementwise(Tape& tape, const std::vector<const Sized*>& inputs, double count, double bytes, const Elementwise& kind);
Sized add(Tape& tape, const Sized& a, const Sized& b);
// In another type; the same tensor where the type stays.
Sized converted(Tape& tape, const Sized& x, double bytes_each);

// Each as its namesake in ops.
Sized norm(Tape& tape, const Sized& x, double width, bool centred, bool weight, bool bias);
Sized linear(Tape& tape, const Sized& x, double in, double out);
Sized embedding(Tape& tape, double tokens, double width);
Sized rotate(Tape& tape, const Sized& x);
Sized activate(Tape& tape, const Sized& x, MlpKind kind);
Sized gated(Tape& tape, const Sized& gate, const Sized& up, MlpKind kind);
Sized output_logits(Tape& tape, const Sized& x, double width, double vocabulary, bool trained);
Sized output_loss(Tape& tape, const Sized& logits, double rows, bool sigmoid, bool softcap);
// x times a learned factor in the exact type, rounded back.
Sized scaled(Tape& tape, const Sized& x);
// x times a mask; `per_sample`: one number a sample.
Sized dropout(Tape& tape, const Sized& x, bool per_sample);

struct SizedAttention {
  double batch, length, heads, kv_heads, width;
  bool softcap, dropout;
};
Sized flash_attention(Tape& tape, const Sized& q, const Sized& k, const Sized& v, const SizedAttention& a);
Sized explicit_attention(Tape& tape, const Sized& q, const Sized& k, const Sized& v, const SizedAttention& a);

}  // namespace quell::ops
