// Lays parameters out in flat buffers and binds their tensors to them. Knows nothing of optimisers, ranks or files.
#include "tensors/arena.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace quell {
namespace {

constexpr int64_t alignment_bytes = 64;

int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

at::ScalarType master_of(Precision precision) { return precision == Precision::fp64 ? at::kDouble : at::kFloat; }

// Elements in 64 bytes of the narrowest buffer, so that the same offsets are aligned in all of them.
int64_t quantum_of(Precision precision) {
  const int64_t narrowest = precision == Precision::fp64 ? 8 : precision == Precision::bf16 ? 2 : 4;
  return alignment_bytes / narrowest;
}

// Norm weights, scales and biases are few and sensitive: they stay in fp32.
bool multiplied_in_bf16(const Parameter& parameter) {
  return parameter.role == Role::matrix || parameter.role == Role::embedding || parameter.role == Role::output;
}

at::Tensor leaf(const at::Tensor& flat, Range range, const std::vector<int64_t>& shape) {
  return flat.narrow(0, range.begin, range.size()).view(shape).detach();
}

}  // namespace

ArenaLayout layout_of(const ParameterList& parameters, Precision precision, int64_t world) {
  require(world >= 1, "arena: world below 1");
  const int64_t quantum = quantum_of(precision);
  std::map<int64_t, std::vector<const Parameter*>> units;
  std::vector<const Parameter*> frozen;
  for (const Parameter& parameter : parameters) (parameter.frozen ? frozen : units[parameter.unit]).push_back(&parameter);

  ArenaLayout layout;
  int64_t end = 0;
  const auto place = [&](const Parameter* parameter) {
    layout.ranges.push_back({parameter, {end, end + parameter->numel()}});
    end = round_up(layout.ranges.back().second.end, quantum);
  };
  for (const auto& [number, members] : units) {
    const int64_t begin = end;
    for (const Parameter* parameter : members) place(parameter);
    end = begin + round_up(end - begin, world * quantum);
    layout.units.push_back({begin, end});
  }
  layout.trainable = end;
  for (const Parameter* parameter : frozen) place(parameter);
  layout.elements = end;
  return layout;
}

Arena::Arena(ParameterList& parameters, const ArenaOptions& options)
    : layout_(layout_of(parameters, options.precision, options.world)) {
  const auto type = at::TensorOptions().dtype(master_of(options.precision)).device(options.device);
  values_ = at::zeros({layout_.elements}, type);
  gradients_ = at::zeros({layout_.trainable}, type);
  if (options.precision == Precision::bf16) copies_ = at::zeros({layout_.elements}, type.dtype(at::kBFloat16));
  for (Parameter& parameter : parameters) bind(parameter);
}

void Arena::bind(Parameter& parameter) const {
  const Range place = range(parameter);
  parameter.value = leaf(values_, place, parameter.shape);
  parameter.compute = parameter.value;
  if (copies_.defined() && multiplied_in_bf16(parameter)) parameter.compute = leaf(copies_, place, parameter.shape);
  if (parameter.frozen) return;
  parameter.compute.set_grad_dtype(master_type());
  parameter.compute.requires_grad_(true);
  parameter.compute.mutable_grad() = view(gradients_, parameter);
}

Range Arena::range(const Parameter& parameter) const {
  const auto is_its = [&](const auto& entry) { return entry.first == &parameter; };
  const auto found = std::find_if(layout_.ranges.begin(), layout_.ranges.end(), is_its);
  if (found == layout_.ranges.end()) throw Bug("arena: no memory for parameter " + parameter.name);
  return found->second;
}

at::Tensor Arena::view(const at::Tensor& flat, const Parameter& parameter) const {
  const Range place = range(parameter);
  if (place.end > flat.numel()) throw Bug("arena: a frozen parameter has no part in this buffer: " + parameter.name);
  return flat.narrow(0, place.begin, place.size()).view(parameter.shape);
}

void Arena::clear_gradients() { gradients_.zero_(); }

void Arena::refresh_compute() {
  if (copies_.defined()) copies_.copy_(values_);
}

}  // namespace quell
