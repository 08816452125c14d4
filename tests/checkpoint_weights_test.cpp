// A model's weights to a file and back, and a file that does not fit.
#include "checkpoint/weights.h"
#include "checkpoint_support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;

namespace {

struct Model {
  ParameterList parameters;
  std::unique_ptr<Arena> arena;

  explicit Model(Precision precision, uint64_t seed) {
    parameters.add("embedding.weight", Role::embedding, 0, {7, 3}, {});
    parameters.add("blocks.0.q.weight", Role::matrix, 1, {5, 3}, {});
    parameters.add("blocks.0.norm.weight", Role::norm_weight, 1, {3}, {})->frozen = true;
    parameters.add("scale", Role::scale, 2, {}, {});
    arena = std::make_unique<Arena>(parameters, ArenaOptions{.precision = precision});
    at::Tensor values = arena->values();
    values.copy_(testing::random_tensor({values.numel()}, seed, values.scalar_type()));
    arena->refresh_compute();
  }
};

}  // namespace

TEST_CASE("weights come back bit for bit, frozen ones too, and bf16 copies follow", "[unit]") {
  for (const Precision precision : {Precision::fp32, Precision::bf16, Precision::fp64}) {
    const testing::TemporaryFolder folder;
    const Model from(precision, 1);
    Model to(precision, 2);
    save_weights(folder / "x", from.parameters, {{"step", "12"}});
    CHECK(SafetensorsFile(folder / "x").metadata() == Metadata{{"step", "12"}});
    load_weights(folder / "x", to.parameters, *to.arena);
    auto other = to.parameters.begin();
    for (const Parameter& parameter : from.parameters) {
      INFO(parameter.name);
      CHECK(at::equal(parameter.value, other->value));
      CHECK(at::equal(parameter.compute, other->compute));
      CHECK(parameter.compute.scalar_type() == other->compute.scalar_type());
      ++other;
    }
  }
}

TEST_CASE("weights of another floating-point type are converted", "[unit]") {
  const testing::TemporaryFolder folder;
  const Model from(Precision::fp64, 1);
  Model to(Precision::fp32, 2);
  save_weights(folder / "x", from.parameters, {});
  load_weights(folder / "x", to.parameters, *to.arena);
  CHECK(at::equal(to.parameters.find("scale")->value, from.parameters.begin()[3].value.to(at::kFloat)));
}

TEST_CASE("weights that are not finite are refused by name and change nothing", "[unit]") {
  const testing::TemporaryFolder folder;
  const Model from(Precision::fp32, 1);
  from.parameters.begin()[1].value.detach()[2][1] = NAN;
  from.parameters.begin()[3].value.detach().fill_(INFINITY);
  save_weights(folder / "x", from.parameters, {});
  Model to(Precision::fp32, 2);
  const at::Tensor before = to.arena->values().clone();
  CHECK_THROWS_WITH(load_weights(folder / "x", to.parameters, *to.arena),
                    Catch::EndsWith("x: holds numbers that are not finite in blocks.0.q.weight, scale"));
  CHECK(at::equal(to.arena->values(), before));
}

TEST_CASE("a file that does not fit is refused with every reason and changes nothing", "[unit]") {
  const testing::TemporaryFolder folder;
  Model model(Precision::fp32, 1);
  const at::Tensor before = model.arena->values().clone();
  write_safetensors(folder / "x", {{"blocks.0.q.weight", at::zeros({3, 5})},
                                   {"blocks.0.norm.weight", at::zeros({3}, at::kInt)},
                                   {"scale", at::zeros({})},
                                   {"blocks.1.q.weight", at::zeros({5, 3})}});
  CHECK(testing::checkpoint_error(folder, [&] { load_weights(folder / "x", model.parameters, *model.arena); }) ==
        "x: does not fit the model:\n"
        "  missing: embedding.weight [7, 3]\n"
        "  shape: blocks.0.q.weight is [3, 5] in the file, [5, 3] in the model\n"
        "  type: blocks.0.norm.weight is Int, not a floating-point type\n"
        "  extra: blocks.1.q.weight [5, 3]");
  CHECK(at::equal(model.arena->values(), before));
}
