// Data that are drawn: the copy task and random tokens.
#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "data/sources.h"

// clang-format off
#include <catch2/catch.hpp>  // last: c10/util/Logging.h has a CHECK of its own
// clang-format on

using namespace quell;

namespace {

using Ids = std::vector<int64_t>;

const CopyData small{.batch = 4, .symbols = 7, .length = 5};

CopySource training(uint64_t seed, const CopyData& config = small) { return CopySource(training_key(seed, "copy"), config); }
RandomSource random_training(uint64_t seed) {
  return RandomSource(training_key(seed, "random"), 6, {.batch = 4, .vocabulary = 11});
}

Ids row(const Ids& all, int64_t index, int64_t width) {
  return Ids(all.begin() + index * width, all.begin() + (index + 1) * width);
}

// Samples that two batches of one shape share, whatever their places.
int64_t shared_samples(const HostBatch& a, const HostBatch& b) {
  std::set<Ids> seen;
  for (int64_t i = 0; i < a.samples; ++i) seen.insert(row(a.inputs, i, a.context));
  int64_t count = 0;
  for (int64_t i = 0; i < b.samples; ++i) count += seen.contains(row(b.inputs, i, b.context));
  return count;
}

template <class Source>
void check_cuts(const Source& source) {
  const HostBatch whole = source.read(3, 12);
  for (const int64_t part : {1, 2, 3, 4}) {
    HostBatch joined;
    for (int64_t first = 3; first < 15; first += part) {
      const HostBatch piece = source.read(first, part);
      joined.inputs.insert(joined.inputs.end(), piece.inputs.begin(), piece.inputs.end());
      joined.targets.insert(joined.targets.end(), piece.targets.begin(), piece.targets.end());
      joined.positions.insert(joined.positions.end(), piece.positions.begin(), piece.positions.end());
    }
    CHECK((joined.inputs == whole.inputs && joined.targets == whole.targets && joined.positions == whole.positions));
  }
}

}  // namespace

TEST_CASE("a sample is a string, the separator and the string again, and only the copy is scored", "[unit]") {
  const HostBatch batch = training(1).read(10, 50);
  CHECK((batch.samples == 50 && batch.context == 10 && batch.answers.empty()));
  std::set<int64_t> symbols;
  for (int64_t i = 0; i < 50; ++i) {
    const Ids inputs = row(batch.inputs, i, 10), targets = row(batch.targets, i, 10);
    const Ids string(inputs.begin(), inputs.begin() + 5);
    symbols.insert(string.begin(), string.end());
    CHECK(inputs[5] == 7);
    CHECK(Ids(inputs.begin() + 6, inputs.end()) == Ids(string.begin(), string.end() - 1));
    CHECK(Ids(targets.begin(), targets.begin() + 5) == Ids(5, -1));
    CHECK(Ids(targets.begin() + 5, targets.end()) == string);
    CHECK(batch.positions[static_cast<size_t>(i)] == 10 + i);
  }
  CHECK(symbols == std::set<int64_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("drawn samples follow from the seed and their position alone", "[unit]") {
  CHECK(training(1).read(5, 9).inputs == training(1).read(5, 9).inputs);
  CHECK(random_training(1).read(5, 9).inputs == random_training(1).read(5, 9).inputs);
  CHECK(training(1).read(5, 9).inputs != training(2).read(5, 9).inputs);
  CHECK(random_training(1).read(5, 9).inputs != random_training(2).read(5, 9).inputs);
  check_cuts(training(3));
  check_cuts(random_training(3));
}

TEST_CASE("symbols are drawn evenly, near the largest vocabulary too", "[unit]") {
  Ids counts(7, 0), ids(70000);
  draw_ids(1, 0, 7, 70000, ids.data());
  for (const int64_t id : ids) ++counts.at(static_cast<size_t>(id));
  // Six deviations of a binomial count of 70,000 draws of probability 1/7: 6 x sqrt(70,000 x 6 / 49).
  for (const int64_t count : counts) CHECK(std::abs(count - 10000) < 556);
  draw_ids(1, 0, 1000000000, 70000, ids.data());
  CHECK(*std::max_element(ids.begin(), ids.end()) < 1000000000);
  CHECK(*std::max_element(ids.begin(), ids.end()) > 990000000);
}

TEST_CASE("training and evaluation, and sets of other names, never see the same samples", "[unit]") {
  const CopyData config{.batch = 4, .symbols = 32, .length = 16};  // 2^80 strings: none comes twice by chance
  const auto evaluated = [&](const std::string& name) {
    return FixedCopies(CopySource(evaluation_key(name, "copy"), config), 200).read(0, 200);
  };
  const HostBatch valid = evaluated("valid");
  CHECK(shared_samples(valid, evaluated("valid")) == 200);
  CHECK(shared_samples(valid, evaluated("test")) == 0);
  for (const uint64_t seed : {0, 1, 2}) CHECK(shared_samples(valid, training(seed, config).read(0, 2000)) == 0);
  CHECK(training_key(1, "copy") != training_key(1, "random"));
}

TEST_CASE("a fixed set of copies says which input each target repeats", "[unit]") {
  const FixedCopies set(CopySource(7, small), 6);
  CHECK(set.samples() == 6);
  const HostBatch batch = set.read(2, 4);
  REQUIRE(batch.answers.size() == 40);
  for (size_t i = 0; i < 40; ++i) {
    CHECK((batch.answers[i] < 0) == (batch.targets[i] < 0));
    if (batch.answers[i] >= 0) CHECK(batch.inputs[i / 10 * 10 + static_cast<size_t>(batch.answers[i])] == batch.targets[i]);
  }
  CHECK(to_tensors(set.read(0, 2)).answers_BT.sizes() == at::IntArrayRef({2, 10}));
  CHECK_FALSE(to_tensors(training(1).read(0, 2)).answers_BT.defined());
  CHECK_THROWS_AS(set.read(3, 4), Bug);
}

TEST_CASE("random tokens are all scored, each the target of the one before", "[unit]") {
  const HostBatch batch = random_training(1).read(0, 40);
  CHECK((batch.samples == 40 && batch.context == 6));
  for (int64_t i = 0; i < 40; ++i) {
    const Ids inputs = row(batch.inputs, i, 6), targets = row(batch.targets, i, 6);
    CHECK(Ids(inputs.begin() + 1, inputs.end()) == Ids(targets.begin(), targets.end() - 1));
  }
  CHECK(std::set<int64_t>(batch.targets.begin(), batch.targets.end()).size() == 11);
  const FixedRandom set(random_training(2), 3);
  CHECK(set.read(1, 2).inputs == random_training(2).read(1, 2).inputs);
  CHECK_THROWS_AS(set.read(2, 2), Bug);
}

TEST_CASE("drawn data have no path and no end, and say what they are", "[unit]") {
  const Source source = training(1);
  CHECK(train_path(DataConfig(small)) == nullptr);
  CHECK(*train_path(DataConfig(TokenData{.train = "here"})) == "here");
  CHECK(kind_of(DataConfig(RandomData{})) == "random");
  CHECK(facts_of(source).path == "copy");
  CHECK(facts_of(source).items == "samples");
  CHECK(epoch_samples(source) > int64_t{1} << 60);
  CHECK(vocabulary_of(source) == nullptr);
  CHECK(facts_of(FixedSet(FixedRandom(random_training(2), 3))).count == 3);
}
