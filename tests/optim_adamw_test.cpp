// The update: against torch.optim.AdamW, against the formula, decay, clipping, clamping and the norm.
#include "checkpoint/safetensors.h"
#include "optim_support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;
using namespace quell::testing;

namespace {

OptimizerConfig plain() {
  OptimizerConfig config;
  config.lr = 0.02;
  config.clip.kind = ClipKind::none;
  return config;
}

}  // namespace

TEST_CASE("twenty updates in fp64 equal torch.optim.AdamW to 1e-12", "[unit]") {
  const SafetensorsFile golden(QUELL_GOLDEN "/adamw.safetensors");
  ParameterList parameters;
  for (const char* index : {"0", "1", "2"}) {
    parameters.add(index, Role::matrix, 0, golden.shape(std::string("initial.") + index), {});
  }
  Arena arena(parameters, {.precision = Precision::fp64});
  for (Parameter& parameter : parameters) parameter.value.detach().copy_(golden.read("initial." + parameter.name));
  OptimizerConfig config = plain();
  config.lr = 1;
  config.betas = {0.9, 0.95};
  config.eps = 1e-8;
  config.weight_decay = 0.1;
  AdamW optimizer(parameters, arena, config);
  const at::Tensor lr = golden.read("lr");
  REQUIRE(lr.numel() == 20);
  for (int64_t t = 0; t < lr.numel(); ++t) {
    for (const Parameter& parameter : parameters) {
      arena.view(arena.gradients(), parameter).copy_(golden.read("grad." + parameter.name).select(0, t));
    }
    update(optimizer, lr[t].item<double>());
  }
  const State state = optimizer.state();
  for (const Parameter& parameter : parameters) {
    INFO(parameter.name);
    const auto error = [&](const at::Tensor& ours, const char* name) {
      const at::Tensor theirs = golden.read(name + parameter.name);
      return largest(ours - theirs) / largest(theirs);
    };
    CHECK(error(parameter.value.detach(), "final.") <= 1e-12);
    CHECK(error(state.tensors.at("first." + parameter.name), "first.") <= 1e-12);
    CHECK(error(state.tensors.at("second." + parameter.name), "second.") <= 1e-12);
  }
}

TEST_CASE("updates in fp32 are as accurate as the formula in fp32", "[unit]") {
  for (const Decay decay : {Decay::coupled, Decay::independent}) {
    SmallModel model;
    OptimizerConfig config = plain();
    config.decay = decay;
    config.weight_decay = 0.3;
    config.groups.matrix.lr_factor = 0.5;
    AdamW optimizer(model.parameters, *model.arena, config);
    const Parameter& matrix = *model.parameters.find("matrix.large");  // 13,000 elements
    WrittenOut twin(matrix.value.detach()), truth(matrix.value.detach().to(at::kDouble));
    for (int step = 0; step < 10; ++step) {
      const double factor = 0.1 * (step + 1), lr = config.lr * factor * 0.5;
      const double shrink = 0.3 * (decay == Decay::coupled ? lr : factor);
      model.draw_gradients(static_cast<uint64_t>(step));
      const at::Tensor gradient = model.gradient(matrix).clone();
      twin.update(gradient, lr, shrink, config);
      truth.update(gradient.to(at::kDouble), lr, shrink, config);
      update(optimizer, factor);
    }
    const Accuracy accuracy = as_accurate_as(matrix.value.detach(), twin.value, truth.value);
    INFO(accuracy);
    CHECK(accuracy);
  }
}

TEST_CASE("independent decay shrinks weights at learning rate 0, coupled decay does not", "[unit]") {
  for (const Decay decay : {Decay::coupled, Decay::independent}) {
    SmallModel model(Precision::fp64);
    OptimizerConfig config = plain();
    config.lr = 0;
    config.decay = decay;
    config.weight_decay = 0.25;
    AdamW optimizer(model.parameters, *model.arena, config);
    const at::Tensor matrix = model.value("matrix").clone(), bias = model.value("bias").clone();
    model.draw_gradients(1);
    update(optimizer, 0.5);
    const at::Tensor expected = decay == Decay::independent ? matrix * (1 - 0.5 * 0.25) : matrix;
    CHECK(at::equal(model.value("matrix"), expected));
    CHECK(at::equal(model.value("bias"), bias));
  }
}

TEST_CASE("the norm of the gradients counts every element, and no padding", "[unit]") {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp64}) {
    SmallModel model(precision);
    const AdamW optimizer(model.parameters, *model.arena, plain());
    CHECK(optimizer.gradient_norm().item<double>() == 0);
    model.draw_gradients(3);
    double squares = 0;
    for (const Parameter& parameter : model.parameters) {
      if (!parameter.frozen) squares += model.gradient(parameter).to(at::kDouble).square().sum().item<double>();
    }
    const at::Tensor norm = optimizer.gradient_norm();
    CHECK(norm.scalar_type() == model.arena->master_type());
    CHECK(norm.dim() == 0);
    CHECK(std::abs(norm.item<double>() - std::sqrt(squares)) <= 2 * ulp(std::sqrt(squares), norm.scalar_type()));
  }
}

TEST_CASE("the norm of many gradients is within two ulp of the true one", "[unit]") {
  ParameterList parameters;
  parameters.add("large", Role::matrix, 0, {2048, 2049}, {});
  const Arena arena(parameters, {});
  at::Tensor gradients = arena.gradients();
  // Equal values are the worst case of one long sum; a few large ones hide in many small ones.
  for (const double large : {1e-3, 1e3}) {
    gradients.fill_(1e-3);
    gradients.narrow(0, 100, 50).fill_(large);
    const double truth = std::sqrt(gradients.to(at::kDouble).square().sum().item<double>());
    const double norm = AdamW(parameters, const_cast<Arena&>(arena), plain()).gradient_norm().item<double>();
    CHECK(std::abs(norm - truth) <= 2 * ulp(truth, at::kFloat));
  }
}

TEST_CASE("the norm of gradients with NaN or infinity is not finite", "[unit]") {
  for (const double broken : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    SmallModel model;
    const AdamW optimizer(model.parameters, *model.arena, plain());
    model.draw_gradients(1);
    model.gradient(*model.parameters.find("bias"))[8][6] = broken;
    CHECK_FALSE(std::isfinite(optimizer.gradient_norm().item<double>()));
  }
}

TEST_CASE("clipping by norm equals smaller gradients, and changes nothing below its limit", "[unit]") {
  for (const Precision precision : {Precision::fp32, Precision::fp64}) {
    for (const double limit : {0.5, 1e6}) {
      SmallModel clipped(precision), scaled(precision);
      OptimizerConfig config = plain();
      config.eps = 1;  // else Adam hides the size of its first gradients
      AdamW expected(scaled.parameters, *scaled.arena, config);
      config.clip = {ClipKind::norm, limit};
      AdamW optimizer(clipped.parameters, *clipped.arena, config);
      for (uint64_t step = 0; step < 3; ++step) {
        clipped.draw_gradients(step);
        scaled.draw_gradients(step);
        const double norm = optimizer.gradient_norm().item<double>();
        REQUIRE(norm > 0.5);
        at::Tensor gradients = scaled.arena->gradients();
        if (limit < norm) gradients.mul_(limit / (norm + 1e-6));
        update(optimizer);
        update(expected);
      }
      const at::Tensor ours = clipped.arena->values(), theirs = scaled.arena->values();
      if (limit > 1) CHECK(at::equal(ours, theirs));
      // The coefficient rounds once to the type and each gradient once more: moments move by a few ulp, values by less.
      CHECK(largest(ours - theirs) <= 16 * ulp(largest(theirs), ours.scalar_type()));
    }
  }
}

TEST_CASE("the norm that clips is the one given", "[unit]") {
  SmallModel model, other;
  OptimizerConfig config = plain();
  config.eps = 1;
  config.clip = {ClipKind::norm, 1.0};
  AdamW optimizer(model.parameters, *model.arena, config), twice(other.parameters, *other.arena, config);
  model.draw_gradients(1);
  other.draw_gradients(1);
  at::Tensor gradients = other.arena->gradients();
  gradients.mul_(2);
  optimizer.update(1, at::scalar_tensor(4096 - 1e-6, at::kFloat), no());
  twice.update(1, at::scalar_tensor(8192 - 1e-6, at::kFloat), no());
  CHECK(at::equal(model.arena->values(), other.arena->values()));
}

TEST_CASE("clipping by value clamps every gradient", "[unit]") {
  SmallModel clipped, clamped;
  OptimizerConfig config = plain();
  config.eps = 1;
  AdamW expected(clamped.parameters, *clamped.arena, config);
  config.clip = {ClipKind::value, 0.25};
  AdamW optimizer(clipped.parameters, *clipped.arena, config);
  clipped.draw_gradients(1);
  clamped.draw_gradients(1);
  at::Tensor gradients = clamped.arena->gradients();
  REQUIRE(gradients.abs().gt(0.25).any().item<bool>());
  gradients.clamp_(-0.25, 0.25);
  update(optimizer);
  update(expected);
  CHECK(at::equal(clipped.arena->values(), clamped.arena->values()));
}

TEST_CASE("a group's clamp keeps its values within bounds and touches no other group", "[unit]") {
  SmallModel model, free;
  OptimizerConfig config = plain();
  AdamW expected(free.parameters, *free.arena, config);
  config.groups.qk_norm_weight.clamp = 0.5;
  AdamW optimizer(model.parameters, *model.arena, config);
  model.draw_gradients(1);
  free.draw_gradients(1);
  update(optimizer);
  update(expected);
  for (const Parameter& parameter : free.parameters) {
    at::Tensor value = parameter.value.detach();
    if (parameter.role == Role::qk_norm_weight) value = value.clamp(-0.5, 0.5);
    CHECK(at::equal(model.value(parameter.name), value));
  }
}

TEST_CASE("bf16 copies follow the masters", "[unit]") {
  SmallModel model(Precision::bf16);
  AdamW optimizer(model.parameters, *model.arena, plain());
  model.draw_gradients(1);
  update(optimizer);
  const Parameter& matrix = *model.parameters.find("matrix");
  CHECK(matrix.compute.scalar_type() == at::kBFloat16);
  CHECK(at::equal(matrix.compute.detach(), matrix.value.to(at::kBFloat16)));
}

TEST_CASE("frozen parameters and padding never move", "[unit]") {
  SmallModel model;
  AdamW optimizer(model.parameters, *model.arena, plain());
  const at::Tensor frozen = model.value("frozen").clone();
  at::Tensor padding = at::ones_like(model.arena->values(), at::kBool);
  for (const Parameter& parameter : model.parameters) {
    const Range range = model.arena->range(parameter);
    padding.narrow(0, range.begin, range.size()).fill_(false);
  }
  REQUIRE(padding.any().item<bool>());
  for (uint64_t step = 0; step < 3; ++step) {
    model.draw_gradients(step);
    update(optimizer);
  }
  CHECK(at::equal(model.value("frozen"), frozen));
  CHECK(model.arena->values().masked_select(padding).eq(0).all().item<bool>());
}

TEST_CASE("a model that is frozen as a whole can be updated", "[unit]") {
  ParameterList parameters;
  parameters.add("a", Role::matrix, 0, {3}, {})->frozen = true;
  Arena arena(parameters, {});
  AdamW optimizer(parameters, arena, plain());
  CHECK(optimizer.groups().empty());
  CHECK(optimizer.gradient_norm().item<float>() == 0);
  update(optimizer);
  CHECK(optimizer.updates() == 1);
}
