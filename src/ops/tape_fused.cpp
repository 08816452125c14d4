// The fused operations on the tape, one for each autograd Function of this room; the twins are in tape_twins.cpp.
#include <cmath>

#include "ops/flash_attention_cpu.h"
#include "ops/tape.h"
#include "ops/tape_twins.h"

namespace quell::ops {
namespace {

constexpr double statistic = 4, index = 8;  // bytes of a fp32 and of an int64

// Under bf16 a weight's gradient is a bf16 product of its own, which is widened to be added into the fp32 gradient. In fp32 the
// product adds into the gradient itself. The twins make it first whatever the type.
void weight_gradient(Tape& tape, double elements) {
  const TapeOptions& o = tape.options();
  const bool narrow = o.storage != o.exact;
  if (!narrow && !o.twins) return;
  const Ledger::Memory product = tape.make(elements * o.storage);
  const Ledger::Memory widened = narrow ? tape.make(elements * o.exact) : nullptr;
}

}  // namespace

Sized norm(Tape& tape, const Sized& x, double width, bool centred, bool weight, bool bias) {
  if (tape.options().twins) return twins::norm(tape, x, centred, weight, bias);
  const double rows = x.count / width, bytes = x.count * tape.options().storage;
  const Ledger::Memory y = tape.make(bytes);
  // Saved: x, and of each row the factor and for layernorm the mean. The parameter's gradient is 64 sums in fp64, which is little.
  const Ledger::Memory size = tape.make(rows * statistic), mean = centred ? tape.make(rows * statistic) : nullptr;
  return tape.record(y, x.count, {&x}, [&tape, saved = x.memory, size, mean, bytes](const Ledger::Memory&) {
    return Tape::Gradients{tape.make(bytes)};
  });
}

Sized linear(Tape& tape, const Sized& x, double in, double out) {
  const double storage = tape.options().storage, rows = x.count / in, bytes = x.count * storage;
  const bool wants = x.node >= 0;
  // Saved: x. In the twin as well.
  return tape.record(tape.make(rows * out * storage), rows * out, {&x},
                     [&tape, saved = x.memory, wants, bytes, elements = in * out](const Ledger::Memory&) {
                       Ledger::Memory dx = wants ? tape.make(bytes) : nullptr;
                       weight_gradient(tape, elements);
                       return Tape::Gradients{dx};
                     });
}

Sized embedding(Tape& tape, double tokens, double width) {
  // Saved: the tokens, which are the batch's. The gradient is added row by row into the table's; the twin's is a table of its own.
  const double table_rows = tape.options().twins ? tokens : 0;
  return tape.record(tape.make(tokens * width * tape.options().storage), tokens * width, {}, [&tape, rows = table_rows, width](const Ledger::Memory&) {
    if (rows > 0) tape.make(rows * width * tape.options().exact);
    return Tape::Gradients{};
  });
}

Sized rotate(Tape& tape, const Sized& x) {
  if (tape.options().twins) return twins::rotate(tape, x);
  return elementwise(tape, {&x}, x.count, x.bytes(), {});  // saved: the table only, which lives as long as the model
}

Sized activate(Tape& tape, const Sized& x, MlpKind kind) {
  if (tape.options().twins) return twins::activate(tape, x, kind);
  return elementwise(tape, {&x}, x.count, x.bytes(), {.saved = {x.memory}});
}

Sized gated(Tape& tape, const Sized& gate, const Sized& up, MlpKind kind) {
  if (tape.options().twins) return twins::gated(tape, gate, up, kind);
  return elementwise(tape, {&gate, &up}, gate.count, gate.bytes(), {.saved = {gate.memory, up.memory}});
}

Sized output_logits(Tape& tape, const Sized& x, double width, double vocabulary, bool trained) {
  constexpr double line = 64;  // bytes to which a row of logits is padded; not by the twin
  const double storage = tape.options().storage, rows = x.count / width, bytes = x.count * storage;
  const double row = tape.options().twins ? vocabulary * storage : std::ceil(vocabulary * storage / line) * line;
  const bool wants = x.node >= 0;
  // Saved: x.
  return tape.record(tape.make(rows * row), rows * vocabulary, {&x},
                     [&tape, saved = x.memory, wants, bytes, trained, elements = width * vocabulary](const Ledger::Memory&) {
                       Ledger::Memory dx = wants ? tape.make(bytes) : nullptr;
                       if (trained) weight_gradient(tape, elements);
                       return Tape::Gradients{dx};
                     });
}

Sized output_loss(Tape& tape, const Sized& logits, double rows, bool sigmoid, bool softcap) {
  Sized loss;
  if (tape.options().twins || sigmoid) {
    loss = twins::output_loss(tape, logits, softcap);
  } else {
    // Saved: the logits, whose memory becomes their gradient, and of each row four numbers in fp64 and an index.
    const Ledger::Memory statistics = tape.make(4 * rows * 8 + rows * index);
    loss = tape.record(tape.make(statistic), 1, {&logits}, [saved = logits.memory, statistics](const Ledger::Memory&) {
      return Tape::Gradients{saved};
    });
  }
  return loss;
}

Sized flash_attention(Tape& tape, const Sized& q, const Sized& k, const Sized& v, const SizedAttention& a) {
  FlashAttention shape{};
  shape.length = static_cast<int64_t>(a.length), shape.width = static_cast<int64_t>(a.width);
  const double threads = tape.options().threads, rows = a.batch * a.heads * a.length;
  const Ledger::Memory out = tape.make(q.bytes());
  // Log-sum-exp goes to the caller, maxima and sums are saved with q, k and v; the scores never exist.
  const Ledger::Memory lse = tape.make(rows * statistic), largest = tape.make(rows * statistic), sum = tape.make(rows * statistic);
  tape.make(threads * static_cast<double>(flash_scratch(shape, false)) * statistic);
  const double gradient = rows * static_cast<double>(flash_padded(shape.width)) * statistic;
  const double scratch = threads * static_cast<double>(flash_scratch(shape, true)) * statistic;
  return tape.record(out, q.count, {&q, &k, &v}, [&tape, q, k, v, largest, sum, gradient, scratch, a](const Ledger::Memory&) {
    // Gradients are fp32 and one for each query head; then those of a group are summed, and all are rounded to their type.
    const Ledger::Memory dq = tape.make(gradient), dk = tape.make(gradient), dv = tape.make(gradient);
    tape.make(scratch);
    const auto of = [&](const Sized& x, const Ledger::Memory& g, double heads) -> Ledger::Memory {
      const bool grouped = heads != a.heads, narrow = tape.options().storage != statistic;
      const Ledger::Memory summed = grouped ? tape.make(x.count * statistic) : g;
      return narrow ? tape.make(x.bytes()) : summed;
    };
    return Tape::Gradients{of(q, dq, a.heads), of(k, dk, a.kv_heads), of(v, dv, a.kv_heads)};
  });
}

}  // namespace quell::ops
