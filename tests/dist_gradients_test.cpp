// Buckets and gradient reduction in a world of one, and when buckets leave in a larger one, beside collectives that only take notes.
#include "base/error.h"
#include "dist/gradients.h"
#include "support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;

namespace {

struct Model {
  ParameterList parameters;
  Model() {
    parameters.add("embedding", Role::embedding, 0, {7, 3}, Initial::constant(0));
    parameters.add("block.a", Role::matrix, 1, {5, 5}, Initial::constant(0));
    parameters.add("block.b", Role::bias, 1, {5}, Initial::constant(0));
    parameters.add("block.frozen", Role::matrix, 1, {4, 4}, Initial::constant(0))->frozen = true;
    parameters.add("output", Role::output, 2, {3, 7}, Initial::constant(0));
  }
};

}  // namespace

TEST_CASE("buckets run from the last unit to the first and hold every trainable element once", "[unit]") {
  for (const int64_t world : {1, 3, 8}) {
    Model model;
    const Arena arena(model.parameters, {.world = world});
    const auto buckets = buckets_of(arena, model.parameters, 1);
    REQUIRE(buckets.size() == 3);
    at::Tensor seen = at::zeros({arena.trainable()}, at::kLong);
    int64_t before = arena.trainable();
    for (const Bucket& bucket : buckets) {
      CHECK(bucket.range.end == before);
      before = bucket.range.begin;
      seen.narrow(0, bucket.range.begin, bucket.range.size()) += 1;
    }
    CHECK(seen.eq(1).all().item<bool>());
    for (const Parameter& parameter : model.parameters) {
      if (parameter.frozen) CHECK(arena.range(parameter).begin >= arena.trainable());
    }
  }
}

TEST_CASE("a world of one leaves the gradients as they are", "[unit]") {
  Model model;
  const Arena arena(model.parameters, {});
  at::Tensor gradients = arena.gradients();
  gradients.copy_(testing::random_tensor({arena.trainable()}, 1));
  const at::Tensor before = gradients.clone();
  const World world;
  GradientReducer(world, gradients, buckets_of(arena, model.parameters)).finish();
  CHECK(at::equal(gradients, before));
}

TEST_CASE("buckets that do not tile the gradients backwards are a bug", "[unit]") {
  const World world;
  const at::Tensor gradients = at::zeros({32});
  CHECK_NOTHROW(GradientReducer(world, gradients, {{{16, 32}, {}}, {{16, 16}, {}}, {{0, 16}, {}}}));
  const std::vector<std::vector<Bucket>> wrong{{},
                                               {{{0, 32}, {}}, {{0, 32}, {}}},
                                               {{{0, 16}, {}}, {{16, 32}, {}}},
                                               {{{16, 32}, {}}, {{0, 15}, {}}},
                                               {{{16, 32}, {}}, {{1, 16}, {}}},
                                               {{{-1, 32}, {}}}};
  for (const auto& buckets : wrong) CHECK_THROWS_AS(GradientReducer(world, gradients, buckets), Bug);
  CHECK_THROWS_AS(GradientReducer(world, at::zeros({4, 8}), {{{0, 32}, {}}}), Bug);
}

namespace {

using Events = std::vector<std::string>;

// Between two ranks, of which the other one adds nothing.
class Notes : public Collectives {
 public:
  explicit Notes(Events& events) : events_(events) {}
  Pending all_reduce(const at::Tensor& tensor, Reduction) override {
    const std::string bucket = std::to_string(tensor.storage_offset());
    events_.push_back("leaves " + bucket);
    return {[this, bucket] { events_.push_back("wait " + bucket); }};
  }
  Pending broadcast(const at::Tensor&, int) override { return {[] {}}; }
  Pending all_gather(const at::Tensor&) override { return {[] {}}; }

 private:
  Events& events_;
};

// A chain of units, each a matrix of 4 x 4, whose gradients are noted when they are there.
struct Chain {
  static constexpr int units = 5;
  ParameterList parameters;
  std::vector<Parameter*> weights;
  std::unique_ptr<Arena> arena;
  Events events;
  std::vector<std::shared_ptr<void>> kept;
  Chain() {
    for (int i = 0; i < units; ++i) weights.push_back(parameters.add("unit" + std::to_string(i), Role::matrix, i, {4, 4}, Initial::constant(0)));
    arena = std::make_unique<Arena>(parameters, ArenaOptions{});
    at::NoGradGuard no_gradients;
    for (Parameter* weight : weights) weight->value.copy_(at::eye(4));
  }
  void note_gradients() {
    for (int i = 0; i < units; ++i) weights[static_cast<size_t>(i)]->compute.register_hook([this, i](const at::Tensor&) { events.push_back("gradient " + std::to_string(i)); });
  }
  void backward(int but_not = -1) {
    at::Tensor x = at::ones({2, 4});
    for (int i = 0; i < units; ++i) {
      if (i != but_not) x = at::matmul(x, weights[static_cast<size_t>(i)]->compute);
    }
    x.sum().backward();
  }
};

std::ptrdiff_t place(const Events& events, const std::string& event) {
  const auto found = std::find(events.begin(), events.end(), event);
  INFO(event);
  REQUIRE(found != events.end());
  return found - events.begin();
}

}  // namespace

TEST_CASE("a bucket leaves before the gradient of the unit two before it is there, and is waited for at the end", "[unit]") {
  Chain chain;
  chain.note_gradients();
  const World world(0, 2, std::make_shared<Notes>(chain.events));
  GradientReducer reducer(world, chain.arena->gradients(), buckets_of(*chain.arena, chain.parameters, 1));
  reducer.arm();
  chain.backward();
  const size_t after_backward = chain.events.size();
  reducer.finish();
  const auto bucket = [&](int unit) { return std::to_string(chain.arena->range(*chain.weights[static_cast<size_t>(unit)]).begin); };
  for (int unit = Chain::units - 1; unit >= 2; --unit) {
    CHECK(place(chain.events, "leaves " + bucket(unit)) < place(chain.events, "gradient " + std::to_string(unit - 2)));
  }
  for (int unit = 0; unit < Chain::units; ++unit) {
    CHECK(place(chain.events, "leaves " + bucket(unit)) < static_cast<std::ptrdiff_t>(after_backward));  // nothing is left for the end
    CHECK(place(chain.events, "wait " + bucket(unit)) >= static_cast<std::ptrdiff_t>(after_backward));
  }
}

TEST_CASE("only the last micro-batch sends gradients, each bucket once a step, always in the same order", "[unit]") {
  Chain chain;
  const World world(0, 2, std::make_shared<Notes>(chain.events));
  GradientReducer reducer(world, chain.arena->gradients(), buckets_of(*chain.arena, chain.parameters, 1));
  Events expected;
  for (const char* what : {"leaves ", "wait "}) {
    for (int unit = Chain::units - 1; unit >= 0; --unit) expected.push_back(what + std::to_string(chain.arena->range(*chain.weights[static_cast<size_t>(unit)]).begin));
  }
  for (int step = 0; step < 2; ++step) {
    chain.backward();
    CHECK(chain.events.empty());
    reducer.arm();
    chain.backward(/*but_not=*/step == 0 ? 3 : -1);  // a unit without a gradient holds those before it back, and is not forgotten
    reducer.finish();
    CHECK(chain.events == expected);
    chain.events.clear();
  }
  chain.backward();  // of a search for what is not finite
  CHECK(chain.events.empty());
}
