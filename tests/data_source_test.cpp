// Batches from token sets.
#include <ATen/ATen.h>

#include <set>

#include "base/error.h"
#include "data/source.h"
#include "data_support.h"

// clang-format off
#include <catch2/catch.hpp>  // last: c10/util/Logging.h has a CHECK of its own
// clang-format on

using namespace quell;
using namespace quell::testing;
using Catch::Message;

namespace {

using Ids = std::vector<int64_t>;

// Token i of this text is i.
TokenSet counting(const TemporaryFolder& folder, int count) {
  std::vector<uint16_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(static_cast<uint16_t>(i));
  write_ids(folder / "count.bin", ids);
  return open_set(folder / "count.bin", TokenType::uint16);
}

Ids joined(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void check_equal(const HostBatch& a, const HostBatch& b) {
  CHECK((a.samples == b.samples && a.context == b.context));
  CHECK((a.inputs == b.inputs && a.targets == b.targets && a.documents == b.documents));
  CHECK(a.positions == b.positions);
}

HostBatch concatenated(const HostBatch& a, const HostBatch& b) {
  return {a.samples + b.samples,
          a.context,
          joined(a.inputs, b.inputs),
          joined(a.targets, b.targets),
          joined(a.documents, b.documents),
          joined(a.positions, b.positions)};
}

// Four documents: "aaaa" "bb" "cccccc" "d".
TokenSet four_documents(const TemporaryFolder& folder) {
  return open_set(prepare_text(folder, "{\"text\":\"aaaa\"}\n{\"text\":\"bb\"}\n{\"text\":\"cccccc\"}\n{\"text\":\"d\"}\n",
                               "byte", 0, 1 << 30, 1 << 26, "four.jsonl"));
}

}  // namespace

TEST_CASE("a sample's targets are the tokens after its inputs", "[unit]") {
  TemporaryFolder folder;
  const TokenSource source(counting(folder, 1000), 16, 1, true);
  const HostBatch batch = source.read(5, 40);
  CHECK(batch.samples == 40);
  CHECK(batch.context == 16);
  REQUIRE(batch.inputs.size() == 640);
  REQUIRE(batch.targets.size() == 640);
  CHECK(batch.documents.empty());
  for (size_t i = 0; i < 640; ++i) {
    REQUIRE(batch.targets[i] == batch.inputs[i] + 1);
    if (i % 16 > 0) REQUIRE(batch.inputs[i] == batch.inputs[i - 1] + 1);
  }
  for (int64_t i = 0; i < 40; ++i) CHECK(batch.positions[static_cast<size_t>(i)] == 5 + i);
}

TEST_CASE("an epoch of samples sees each input at most once and nearly all of them", "[unit]") {
  TemporaryFolder folder;
  const TokenSource source(counting(folder, 1003), 16, 1, true);
  for (int64_t epoch : {0, 1}) {
    const HostBatch batch = source.read(epoch * source.epoch_samples(), source.epoch_samples());
    const std::set<int64_t> seen(batch.inputs.begin(), batch.inputs.end());
    CHECK(seen.size() == batch.inputs.size());
    CHECK(seen.size() > 1003 - 2 * 16);
  }
}

TEST_CASE("ranks and micro-batches read contiguous shares that make up the step", "[unit]") {
  TemporaryFolder folder;
  const TokenSource source(counting(folder, 5000), 8, 3, true);
  const int64_t batch = 72;
  for (int64_t step : {0, 3, 1000000}) {
    const HostBatch whole = source.read(step * batch, batch);
    for (int64_t ranks : {1, 2, 3, 4}) {
      for (int64_t micro_batches : {1, 2, 3}) {
        const int64_t part = batch / ranks / micro_batches;
        HostBatch all = source.read(step * batch, 0);
        for (int64_t rank = 0; rank < ranks; ++rank) {
          for (int64_t m = 0; m < micro_batches; ++m) {
            all = concatenated(all, source.read(step * batch + rank * (batch / ranks) + m * part, part));
          }
        }
        check_equal(all, whole);
      }
    }
  }
}

TEST_CASE("a range of samples reads the same wherever it is cut, with documents too", "[unit]") {
  TemporaryFolder folder;
  const TokenSource source(four_documents(folder), 3, 3, false);
  const HostBatch whole = source.read(7, 9);
  for (int64_t cut = 0; cut <= 9; ++cut) check_equal(concatenated(source.read(7, cut), source.read(7 + cut, 9 - cut)), whole);
}

TEST_CASE("the seed changes the order of samples", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = counting(folder, 1000);
  CHECK(TokenSource(set, 16, 1, true).read(0, 10).inputs == TokenSource(set, 16, 1, true).read(0, 10).inputs);
  CHECK(TokenSource(set, 16, 1, true).read(0, 10).inputs != TokenSource(set, 16, 2, true).read(0, 10).inputs);
}

TEST_CASE("no target and no attention crosses a border when documents are kept apart", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = four_documents(folder);
  const HostBatch apart = FixedTokens(set, 12, 1, false).read(0, 1);
  CHECK(apart.inputs == Ids{'a', 'a', 'a', 'a', 'b', 'b', 'c', 'c', 'c', 'c', 'c', 'c'});
  CHECK(apart.targets == Ids{'a', 'a', 'a', -1, 'b', -1, 'c', 'c', 'c', 'c', 'c', -1});
  CHECK(apart.documents == Ids{0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 2, 2});
  const HostBatch across = FixedTokens(set, 12, 1, true).read(0, 1);
  CHECK(across.targets == Ids{'a', 'a', 'a', 'b', 'b', 'c', 'c', 'c', 'c', 'c', 'c', 'd'});
  CHECK(across.documents.empty());

  const TokenSource source(set, 2, 1, false);
  const HostBatch samples = source.read(0, 50);
  for (size_t i = 0; i < samples.inputs.size(); ++i) CHECK((samples.targets[i] == samples.inputs[i] || samples.targets[i] == -1));
}

TEST_CASE("a set of one document needs no documents", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(prepare_text(folder, "abcdefgh"));
  CHECK(FixedTokens(set, 3, 0, false).read(0, 1).documents.empty());
}

TEST_CASE("targets that are not scored are ignored", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = open_set(prepare_text(
      folder, "{\"prompt\":\"ab\",\"answer\":\"cd\"}\n{\"prompt\":\"e\",\"answer\":\"f\"}\n", "byte", 0, 6, 64, "a.jsonl"));
  CHECK(FixedTokens(set, 5, 1, true).read(0, 1).targets == Ids{-1, 'c', 'd', -1, 'f'});
}

TEST_CASE("a fixed set is evenly spaced, or all of the text", "[unit]") {
  TemporaryFolder folder;
  const TokenSet set = counting(folder, 101);
  const FixedTokens all(set, 10, 0, true), three(set, 10, 3, true), more(set, 10, 1000, true);
  CHECK(all.samples() == 10);
  CHECK(more.samples() == 10);
  Ids every;
  for (int64_t i = 1; i <= 100; ++i) every.push_back(i);
  CHECK(all.read(0, 10).targets == every);
  const HostBatch batch = three.read(0, 3);
  CHECK((batch.inputs[0] == 0 && batch.inputs[10] == 45 && batch.inputs[20] == 90));
  CHECK(batch.targets[29] == 100);
  CHECK(batch.positions == Ids{0, 1, 2});
  check_equal(concatenated(three.read(0, 1), three.read(1, 2)), batch);
  CHECK_THROWS_AS(three.read(1, 3), Bug);
}

TEST_CASE("settings that the data cannot honour are errors", "[unit]") {
  TemporaryFolder folder;
  const TokenSet raw = counting(folder, 10);
  const std::string message = (folder / "count.bin") +
                              ": data.cross_documents: false needs to know where documents begin, which a "
                              "raw file does not say: prepare the text with quell data prepare, or leave the key out";
  const std::string too_short = (folder / "count.bin") +
                                ": 10 tokens are too few for one window of model.context + 1 = 11: use a "
                                "longer text or a smaller context";
  CHECK_THROWS_MATCHES(TokenSource(raw, 2, 1, false), DataError, Message(message));
  CHECK_THROWS_MATCHES(FixedTokens(raw, 2, 1, false), DataError, Message(message));
  CHECK_THROWS_MATCHES(FixedTokens(raw, 10, 0, true), DataError, Message(too_short));
  CHECK_THROWS_MATCHES(TokenSource(raw, 10, 1, true), DataError, Message(too_short));
}

TEST_CASE("tensors take over a host batch without a copy", "[unit]") {
  TemporaryFolder folder;
  const TokenSource source(four_documents(folder), 3, 1, false);
  HostBatch host = source.read(0, 4);
  const HostBatch copy = host;
  const int64_t* memory = host.inputs.data();
  const Batch batch = to_tensors(std::move(host));
  CHECK(batch.inputs_BT.const_data_ptr<int64_t>() == memory);
  const auto expect = [](const at::Tensor& tensor, const Ids& values, std::vector<int64_t> shape) {
    CHECK(tensor.scalar_type() == at::kLong);
    CHECK(tensor.sizes().vec() == shape);
    CHECK(Ids(tensor.const_data_ptr<int64_t>(), tensor.const_data_ptr<int64_t>() + tensor.numel()) == values);
  };
  expect(batch.inputs_BT, copy.inputs, {4, 3});
  expect(batch.targets_BT, copy.targets, {4, 3});
  expect(batch.documents_BT, copy.documents, {4, 3});
  expect(batch.samples_B, copy.positions, {4});

  const TokenSource across(four_documents(TemporaryFolder()), 3, 1, true);
  CHECK_FALSE(to_tensors(across.read(0, 2)).documents_BT.defined());
}
