// The sharded update: every owner's part of values and moments is what one owner of all computes, bit for bit, whatever the roles, the
// clipping and the type; and its state is put together from, and taken out of, the whole.
#include "base/error.h"
#include "optim_support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;
using namespace quell::testing;

namespace {

// The other ranks' parts stay as they are.
class Alone : public Collectives {
 public:
  Pending all_reduce(const at::Tensor&, Reduction) override { return {[] {}}; }
  Pending broadcast(const at::Tensor&, int) override { return {[] {}}; }
  Pending all_gather(const at::Tensor&) override {
    ++gathered;
    return {[] {}};
  }
  int gathered = 0;
};

OptimizerConfig busy(ClipKind clip, Decay decay) {
  OptimizerConfig config;
  config.lr = 0.05;
  config.decay = decay;
  config.clip = {clip, 0.5};
  for (const Role role : all_roles) config.groups.of(role) = {.decay = 0.2, .lr_factor = 1, .clamp = 0.75};
  return config;
}

// `state` of all owners as one whole.
State joined(const std::vector<State>& parts) {
  State whole;
  whole.integers = parts[0].integers;
  for (const auto& [name, extract] : parts[0].extracts) {
    at::Tensor all = at::full(extract.shape, std::nan(""), parts[0].tensors.at(name).options());
    for (const State& part : parts) {
      const at::Tensor& own = part.tensors.at(name);
      all.view({-1}).narrow(0, part.extracts.at(name).begin, own.numel()).copy_(own);
    }
    whole.tensors[name] = all;
  }
  return whole;
}

bool same(const State& a, const State& b) {
  bool is_same = a.integers == b.integers && a.tensors.size() == b.tensors.size();
  for (const auto& [name, tensor] : a.tensors) is_same = is_same && at::equal(tensor, b.tensors.at(name));
  return is_same;
}

}  // namespace

TEST_CASE("each of several owners updates its share as one owner of all would, bit for bit", "[unit]") {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp64}) {
    for (const auto& config : {busy(ClipKind::norm, Decay::coupled), busy(ClipKind::value, Decay::independent), busy(ClipKind::none, Decay::coupled)}) {
      for (const int owners : {2, 3}) {
        SmallModel whole(precision, 1, owners);
        AdamW all(whole.parameters, *whole.arena, config);
        std::vector<std::unique_ptr<SmallModel>> models;
        std::vector<std::unique_ptr<AdamW>> optimizers;
        for (int owner = 0; owner < owners; ++owner) {
          models.push_back(std::make_unique<SmallModel>(precision, 1, owners));
          optimizers.push_back(std::make_unique<AdamW>(models.back()->parameters, *models.back()->arena, config, World(owner, owners, std::make_shared<Alone>())));
        }
        for (uint64_t step = 0; step < 3; ++step) {
          whole.draw_gradients(step);
          update(all);
          at::Tensor values = at::full_like(whole.arena->values(), std::nan(""));
          std::vector<State> states;
          for (size_t owner = 0; owner < models.size(); ++owner) {
            models[owner]->draw_gradients(step);
            update(*optimizers[owner]);
            for (const Piece& piece : pieces_of(*models[owner]->arena, models[owner]->parameters, {static_cast<int64_t>(owner), owners})) {
              const Range at = piece.in_arena;
              values.narrow(0, at.begin, at.size()).copy_(models[owner]->arena->values().narrow(0, at.begin, at.size()));
            }
            states.push_back(optimizers[owner]->state());
          }
          for (const Parameter& parameter : whole.parameters) {
            if (!parameter.frozen) CHECK(at::equal(whole.arena->view(values, parameter), parameter.value));
          }
          CHECK(same(all.state(), joined(states)));
          // As the gather would: the next step begins from the same values everywhere.
          for (auto& model : models) model->arena->values().copy_(whole.arena->values());
        }
      }
    }
  }
}

TEST_CASE("an owner takes its part out of a whole state, and refuses one of another shape", "[unit]") {
  SmallModel whole(Precision::fp32, 1, 3), model(Precision::fp32, 1, 3);
  AdamW all(whole.parameters, *whole.arena, {});
  for (uint64_t step = 0; step < 2; ++step) {
    whole.draw_gradients(step);
    update(all);
  }
  std::vector<State> parts;
  for (int owner = 0; owner < 3; ++owner) {
    AdamW one(model.parameters, *model.arena, {}, World(owner, 3, std::make_shared<Alone>()));
    one.restore(all.state());
    CHECK(one.updates() == 2);
    parts.push_back(copied(one.state()));
  }
  CHECK(same(all.state(), joined(parts)));

  State wrong = copied(all.state());
  wrong.tensors["first.matrix"] = at::zeros({7, 9});
  AdamW one(model.parameters, *model.arena, {}, World(1, 3, std::make_shared<Alone>()));
  CHECK_THROWS_AS(one.restore(wrong), CheckpointError);
}

TEST_CASE("after an update every unit's values are gathered once, and of one owner none", "[unit]") {
  SmallModel model(Precision::fp32, 1, 2);
  const auto between = std::make_shared<Alone>();
  AdamW sharded(model.parameters, *model.arena, {}, World(0, 2, between));
  update(sharded);
  CHECK(between->gathered == static_cast<int>(model.arena->units().size()));
}
