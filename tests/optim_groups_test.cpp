// Parameter groups: who is in which, and what each role is by default.
#include "optim_support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;
using namespace quell::testing;

TEST_CASE("every trainable parameter is in exactly one group, that of its role", "[unit]") {
  const SmallModel model;
  const auto groups = groups_of(model.parameters, {});
  CHECK(groups.size() == all_roles.size());
  std::map<const Parameter*, int> seen;
  for (const ParameterGroup& group : groups) {
    int64_t numel = 0;
    for (const Parameter* parameter : group.parameters) {
      CHECK(parameter->role == group.role);
      ++seen[parameter];
      numel += parameter->numel();
    }
    CHECK(group.numel == numel);
  }
  for (const Parameter& parameter : model.parameters) CHECK(seen[&parameter] == (parameter.frozen ? 0 : 1));
}

TEST_CASE("matrices, embeddings and outputs decay by default, other roles do not", "[unit]") {
  const SmallModel model;
  OptimizerConfig config;
  config.weight_decay = 0.3;
  for (const ParameterGroup& group : groups_of(model.parameters, config)) {
    const bool decays = group.role == Role::matrix || group.role == Role::embedding || group.role == Role::output;
    INFO(name_of(group.role));
    CHECK(group.decay == (decays ? 0.3 : 0));
    CHECK(group.lr_factor == 1);
    CHECK_FALSE(group.clamp);
  }
}

TEST_CASE("each role takes its own settings, also a decay of 0", "[unit]") {
  const SmallModel model;
  for (const Role role : all_roles) {
    OptimizerConfig config;
    config.groups.of(role) = {.decay = 0, .lr_factor = 2, .clamp = 3};
    for (const ParameterGroup& group : groups_of(model.parameters, config)) {
      INFO(name_of(role) << " set, " << name_of(group.role) << " seen");
      CHECK((group.lr_factor == 2) == (group.role == role));
      CHECK(group.clamp.has_value() == (group.role == role));
      if (group.role == role) CHECK(group.decay == 0);
    }
    config.groups.of(role).decay = 0.7;
    for (const ParameterGroup& group : groups_of(model.parameters, config)) {
      CHECK((group.decay == 0.7) == (group.role == role));
    }
  }
}

TEST_CASE("a role without trainable parameters has no group", "[unit]") {
  ParameterList parameters;
  parameters.add("a", Role::bias, 0, {3}, {});
  parameters.add("b", Role::matrix, 0, {3}, {})->frozen = true;
  const auto groups = groups_of(parameters, {});
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].role == Role::bias);
}

TEST_CASE("the learning-rate factor of a role scales its steps alone", "[unit]") {
  SmallModel model(Precision::fp64), slow(Precision::fp64);
  OptimizerConfig config;
  config.weight_decay = 0;
  AdamW expected(model.parameters, *model.arena, config);
  config.groups.scale.lr_factor = 0.25;
  AdamW optimizer(slow.parameters, *slow.arena, config);
  const at::Tensor before = model.arena->values().clone();
  model.draw_gradients(1);
  slow.draw_gradients(1);
  update(expected);
  update(optimizer);
  const at::Tensor scale = SmallModel(Precision::fp64).value("scale");
  const at::Tensor full = model.value("scale") - scale, quarter = slow.value("scale") - scale;
  CHECK(largest(quarter - 0.25 * full) <= 4 * ulp(largest(scale), at::kDouble));
  CHECK(at::equal(slow.value("matrix"), model.value("matrix")));
}
