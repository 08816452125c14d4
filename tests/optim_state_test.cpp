// Bad steps that leave no trace, and state that is saved and restored exactly.
#include "base/error.h"
#include "optim_support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;
using namespace quell::testing;

namespace {

// Everything on that could touch a value.
OptimizerConfig busy(ClipKind clip) {
  OptimizerConfig config;
  config.lr = 0.05;
  config.decay = Decay::independent;
  config.clip = {clip, 0.5};
  for (const Role role : all_roles) config.groups.of(role) = {.decay = 0.2, .lr_factor = 1, .clamp = 0.75};
  return config;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(a.view({-1}).view(at::kByte), b.view({-1}).view(at::kByte));
}

bool same_state(const State& a, const State& b) {
  bool same = a.integers == b.integers && a.numbers == b.numbers && a.tensors.size() == b.tensors.size();
  for (const auto& [name, tensor] : a.tensors) same = same && same_bits(tensor, b.tensors.at(name));
  return same;
}

std::string error_of(AdamW& optimizer, const State& state) {
  try {
    optimizer.restore(state);
  } catch (const CheckpointError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a bad step changes no value, moment or count, whatever the gradients hold", "[unit]") {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp64}) {
    for (const ClipKind clip : {ClipKind::none, ClipKind::norm, ClipKind::value}) {
      for (const int updates_before : {0, 2}) {
        SmallModel model(precision);
        AdamW optimizer(model.parameters, *model.arena, busy(clip));
        for (int step = 0; step < updates_before; ++step) {
          model.draw_gradients(static_cast<uint64_t>(step));
          update(optimizer);
        }
        const at::Tensor values = model.arena->values().clone();
        const State state = copied(optimizer.state());
        for (const double broken : {std::nan(""), HUGE_VAL, 1.0}) {
          model.draw_gradients(9);
          model.gradient(*model.parameters.find("matrix"))[3][4] = broken;
          optimizer.update(0.7, optimizer.gradient_norm(), yes());
          at::Tensor gradients = model.arena->gradients();
          gradients.fill_(broken);
          optimizer.update(0.7, optimizer.gradient_norm(), yes());
        }
        CHECK(same_bits(model.arena->values(), values));
        CHECK(same_state(optimizer.state(), state));
        CHECK(optimizer.updates() == updates_before);
      }
    }
  }
}

TEST_CASE("updates after a bad step are those of a run without it", "[unit]") {
  SmallModel with, without;
  AdamW one(with.parameters, *with.arena, busy(ClipKind::norm));
  AdamW other(without.parameters, *without.arena, busy(ClipKind::norm));
  for (uint64_t step = 0; step < 5; ++step) {
    if (step % 2 == 0) {
      with.arena->gradients().fill_(std::nan(""));
      one.update(1, one.gradient_norm(), yes());
      with.arena->clear_gradients();  // padding too
    }
    with.draw_gradients(step);
    without.draw_gradients(step);
    update(one);
    update(other);
  }
  CHECK(same_bits(with.arena->values(), without.arena->values()));
  CHECK(one.updates() == 5);
}

TEST_CASE("a restored optimiser goes on as if it had not been saved", "[unit]") {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp64}) {
    SmallModel model(precision), copy(precision, 2);
    AdamW optimizer(model.parameters, *model.arena, busy(ClipKind::norm));
    AdamW restored(copy.parameters, *copy.arena, busy(ClipKind::norm));
    for (uint64_t step = 0; step < 3; ++step) {
      model.draw_gradients(step);
      copy.draw_gradients(step + 100);
      update(optimizer);
      if (step == 0) update(restored);
    }
    const State state = copied(optimizer.state());
    CHECK(state.integers.at("updates") == 3);
    restored.restore(state);
    CHECK(same_state(restored.state(), state));
    at::Tensor values = copy.arena->values();
    values.copy_(model.arena->values());
    for (uint64_t step = 3; step < 6; ++step) {
      model.draw_gradients(step);
      copy.draw_gradients(step);
      update(optimizer);
      update(restored);
    }
    CHECK(same_bits(copy.arena->values(), model.arena->values()));
    CHECK(same_state(restored.state(), optimizer.state()));
    const auto moment = [](const State& from) { return from.tensors.at("first.matrix"); };
    CHECK_FALSE(same_bits(moment(state), moment(optimizer.state())));  // a copy stays as it was
  }
}

TEST_CASE("state holds two moments of each trainable parameter in its shape", "[unit]") {
  SmallModel model;
  AdamW optimizer(model.parameters, *model.arena, {});
  const State state = optimizer.state();
  CHECK(state.tensors.size() == 2 * (model.parameters.size() - 1));
  CHECK(state.tensors.at("first.matrix.large").sizes() == at::IntArrayRef({100, 130}));
  CHECK(state.tensors.contains("second.bias"));
  CHECK_FALSE(state.tensors.contains("first.frozen"));
}

TEST_CASE("state of another model is refused with every reason and changes nothing", "[unit]") {
  SmallModel model;
  AdamW optimizer(model.parameters, *model.arena, {});
  model.draw_gradients(1);
  update(optimizer);
  const State before = copied(optimizer.state());
  State state = before;
  state.tensors.erase("first.bias");
  state.tensors["first.matrix"] = at::ones({7, 9});
  state.tensors["second.matrix"] = at::ones({9, 7}, at::kDouble);
  state.tensors["second.extra"] = at::ones({2});
  state.integers.clear();
  CHECK(error_of(optimizer, state) ==
        "optimizer state:\n"
        "  missing: first.bias\n"
        "  of no use here: second.extra\n"
        "  missing: updates\n"
        "  first.matrix: Float [7, 9] is stored, Float [9, 7] is needed\n"
        "  second.matrix: Double [9, 7] is stored, Float [9, 7] is needed");
  CHECK(same_state(optimizer.state(), before));
}
