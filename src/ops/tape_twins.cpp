#include "ops/tape_twins.h"

namespace quell::ops {
namespace {

// c tanh(x / c): tanh saves its result.
Sized capped(Tape& tape, const Sized& x) {
  const Sized divided = elementwise(tape, {&x}, x.count, x.bytes(), {});
  const Sized bent = elementwise(tape, {&divided}, x.count, x.bytes(), {.saves_result = true});
  return elementwise(tape, {&bent}, x.count, x.bytes(), {});
}

// What matmul multiplies: [B, T, heads, D] in the exact type, heads repeated for a group, and laid out head by head, which is a
// copy where there is more than one sample or one group.
Sized by_head(Tape& tape, const Sized& x, const SizedAttention& a, double heads) {
  const double exact = tape.options().exact;
  const Sized wide = converted(tape, x, exact);
  if (a.batch == 1 && heads == a.heads) return wide;
  const double count = x.count / heads * a.heads;
  return elementwise(tape, {&wide}, count, count * exact, {});
}

Sized product(Tape& tape, const Sized& a, const Sized& b, double count) {
  return elementwise(tape, {&a, &b}, count, count * tape.options().exact, {.saved = {a.memory, b.memory}});
}

// Logits with -inf where a key is not seen. Each operation makes a matrix of its own; the mask is saved.
Sized scores(Tape& tape, const Sized& q, const Sized& k, const SizedAttention& a) {
  const double count = a.batch * a.heads * a.length * a.length;
  const Sized q_by_head = by_head(tape, q, a, a.heads), k_by_head = by_head(tape, k, a, a.kv_heads);
  Sized s = product(tape, q_by_head, k_by_head, count);
  s = elementwise(tape, {&s}, count, s.bytes(), {});
  if (a.softcap) s = capped(tape, s);
  const Ledger::Memory mask = tape.make(a.length * a.length);
  return elementwise(tape, {&s}, count, s.bytes(), {.saved = {mask}});
}

}  // namespace

Sized explicit_attention(Tape& tape, const Sized& q, const Sized& k, const Sized& v, const SizedAttention& a) {
  const Sized s = scores(tape, q, k, a);
  Sized weights = elementwise(tape, {&s}, s.count, s.bytes(), {.saves_result = true});
  if (a.dropout) weights = dropout(tape, weights, false);
  tape.count_saved_scores(s.bytes() * (1 + a.softcap + a.dropout));
  const Sized v_by_head = by_head(tape, v, a, a.kv_heads);
  const Sized wide = product(tape, weights, v_by_head, q.count);
  const Sized out = converted(tape, wide, tape.options().storage);
  tape.make(s.bytes());  // exp(score - largest), for the log-sum-exp
  return elementwise(tape, {&out}, q.count, out.bytes(), {});  // heads beside each other again
}

namespace twins {
namespace {

// A chain of operations on x that saves `saved` tensors of x's size besides x itself, and makes one more at a time on its way.
Sized chain(Tape& tape, const Sized& x, double saved) {
  const Sized wide = converted(tape, x, tape.options().exact);
  const Ledger::Memory kept = tape.make(saved * wide.bytes());
  tape.make(wide.bytes());
  return elementwise(tape, {&wide}, x.count, wide.bytes(), {.saved = {wide.memory, kept}});
}

// exact_gelu saves the argument of erf, 1 + erf and x / 2; tanh_gelu two powers of x, tanh, 1 + tanh and x / 2.
double saved_by(MlpKind kind) {
  switch (kind) {
    case MlpKind::gelu: case MlpKind::geglu: return 3;
    case MlpKind::gelu_tanh: case MlpKind::geglu_tanh: return 5;
    case MlpKind::swiglu: return 1;  // the sigmoid
    case MlpKind::relu_squared: return 1;
  }
  return 0;
}

}  // namespace

Sized norm(Tape& tape, const Sized& x, bool centred, bool weight, bool bias) {
  Sized y = converted(tape, x, tape.options().exact);
  const double count = x.count, bytes = y.bytes();
  if (centred) y = elementwise(tape, {&y}, count, bytes, {});
  tape.make(bytes);  // the squares
  y = elementwise(tape, {&y}, count, bytes, {.saved = {y.memory}});
  if (weight) y = elementwise(tape, {&y}, count, bytes, {.saved = {y.memory}});
  if (bias) y = elementwise(tape, {&y}, count, bytes, {.passes = true});
  return converted(tape, y, tape.options().storage);
}

Sized rotate(Tape& tape, const Sized& x) {
  const double wide = x.count * tape.options().exact;
  tape.make(3 * wide);  // four products and two sums of half the size; sines and cosines are saved, which is little
  return elementwise(tape, {&x}, x.count, x.bytes(), {});
}

Sized activate(Tape& tape, const Sized& x, MlpKind kind) {
  return converted(tape, chain(tape, x, saved_by(kind)), tape.options().storage);
}

Sized gated(Tape& tape, const Sized& gate, const Sized& up, MlpKind kind) {
  const Sized bent = chain(tape, gate, saved_by(kind)), wide = converted(tape, up, tape.options().exact);
  const Sized y = elementwise(tape, {&bent, &wide}, up.count, bent.bytes(), {.saved = {bent.memory, wide.memory}});
  return converted(tape, y, tape.options().storage);
}

Sized output_loss(Tape& tape, const Sized& logits, bool softcap) {
  const Sized chosen = elementwise(tape, {&logits}, logits.count, logits.bytes(), {});  // of the rows that are scored
  Sized x = converted(tape, chosen, tape.options().exact);
  if (softcap) x = capped(tape, x);
  tape.make(x.bytes());  // exp(x - largest); x is saved for its gradient
  return elementwise(tape, {&x}, 1, tape.options().exact, {.saved = {x.memory}});
}

}  // namespace twins
}  // namespace quell::ops
