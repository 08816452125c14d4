// The tape itself, and LibTorch's own operations on it.
#include "ops/tape.h"

#include "base/error.h"

namespace quell::ops {

Sized Tape::record(Ledger::Memory out, double count, const std::vector<const Sized*>& inputs, Backward backward) {
  Sized made{std::move(out), count, -1};
  bool wanted = training_;
  Node node;
  for (const Sized* input : inputs) {
    node.inputs.push_back(input->node);
    wanted = wanted || input->node >= 0;
  }
  if (!wanted) return made;
  node.backward = std::move(backward);
  made.node = static_cast<int64_t>(nodes_.size());
  nodes_.push_back(std::move(node));
  return made;
}

void Tape::accumulate(int64_t node, Ledger::Memory gradient) {
  if (node < 0 || gradient == nullptr) return;
  Ledger::Memory& sum = nodes_[static_cast<size_t>(node)].gradient;
  if (sum == nullptr) {
    sum = std::move(gradient);
  } else if (sum.use_count() > 1) {
    sum = make(static_cast<double>(sum->requested));  // another node still reads what lies there
  }
}

void Tape::backward(const Sized& root) {
  require(root.node >= 0, "tape: nothing to differentiate");
  accumulate(root.node, make(options_.exact));
  for (int64_t i = root.node; i >= 0; --i) {
    Node node = std::move(nodes_[static_cast<size_t>(i)]);
    if (node.gradient == nullptr) continue;
    Gradients gradients = node.backward(node.gradient);
    node.backward = nullptr;
    node.gradient = nullptr;
    for (size_t k = 0; k < gradients.size(); ++k) accumulate(node.inputs[k], std::move(gradients[k]));
  }
  nodes_.clear();
}

Sized elementwise(Tape& tape, const std::vector<const Sized*>& inputs, double count, double bytes, const Elementwise& kind) {
  Ledger::Memory out = tape.make(bytes);
  std::vector<Ledger::Memory> saved = kind.saved;
  if (kind.saves_result) saved.push_back(out);
  std::vector<double> sizes;
  for (const Sized* input : inputs) sizes.push_back(input->node >= 0 ? input->bytes() : 0);
  return tape.record(out, count, inputs, [&tape, saved, sizes, passes = kind.passes](const Ledger::Memory& g) {
    Tape::Gradients gradients;
    for (const double size : sizes) gradients.push_back(size == 0 ? nullptr : passes ? g : tape.make(size));
    return gradients;
  });
}

Sized add(Tape& tape, const Sized& a, const Sized& b) {
  return elementwise(tape, {&a, &b}, a.count, a.bytes(), {.passes = true});
}

Sized converted(Tape& tape, const Sized& x, double bytes_each) {
  const double bytes = x.count * bytes_each;
  return bytes == x.bytes() ? x : elementwise(tape, {&x}, x.count, bytes, {});
}

Sized scaled(Tape& tape, const Sized& x) {
  const double exact = tape.options().exact;
  // A product of two types widens the narrow one first; it saves both factors for each other's gradient, of which that of the
  // learned one is a product as large as x before it is summed up.
  const Sized wide = converted(tape, x, exact);
  Ledger::Memory out = tape.make(x.count * exact);
  const bool wants = x.node >= 0;
  const Sized product = tape.record(out, x.count, {&wide}, [&tape, saved = wide.memory, wants, size = x.count * exact](const Ledger::Memory&) {
    Ledger::Memory dx = wants ? tape.make(size) : nullptr;
    const Ledger::Memory of_factor = tape.make(size);
    return Tape::Gradients{dx};
  });
  return converted(tape, product, tape.options().storage);
}

Sized dropout(Tape& tape, const Sized& x, bool per_sample) {
  if (per_sample) return elementwise(tape, {&x}, x.count, x.bytes(), {});
  // The masks of the samples and then their stack, which the product saves.
  Ledger::Memory mask;
  {
    const Ledger::Memory masks = tape.make(x.bytes());
    mask = tape.make(x.bytes());
  }
  return elementwise(tape, {&x}, x.count, x.bytes(), {.saved = {mask}});
}

}  // namespace quell::ops
