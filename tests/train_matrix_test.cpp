// Exact resume over choices that have state or meet in a step: any two of their values stand together in one of 24 runs, each gone on
// with from three steps.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <tuple>

#include "config/print.h"
#include "resumed.h"

namespace quell {
namespace {

using testing::Cases;
using testing::TemporaryFolder;
using testing::tiny_config;
using testing::tiny_vision;
using testing::TinyImages;

using Change = std::function<void(RunConfig&)>;
void nothing(RunConfig&) {}

AttentionConfig& attention(RunConfig& config) { return transformer(config.model).attention; }

// But for the first, which is the kind of model.
const std::vector<std::vector<Change>> factors{
    {nothing, nothing},
    {nothing, [](RunConfig& c) { c.precision = Precision::bf16; }, [](RunConfig& c) { c.precision = Precision::fp64; }},
    {nothing, [](RunConfig& c) { c.micro_batches = 2; }, [](RunConfig& c) { c.micro_batches = 4; }},
    {nothing, [](RunConfig& c) { transformer(c.model).dropout = 0.1; }},
    {nothing,
     [](RunConfig& c) {
       if (auto* tokens = std::get_if<TokenData>(&c.data)) tokens->cross_documents = false;
       if (auto* images = std::get_if<ImageData>(&c.data)) images->augment = {.flip = true, .crop_padding = 2, .random_resized_crop = {}};
     }},
    {nothing, [](RunConfig& c) { c.ema = 0.9; }},
    {nothing, [](RunConfig& c) { c.optimizer.decay = Decay::independent; }},
    {nothing, [](RunConfig& c) { c.optimizer.clip = {ClipKind::value, 0.1}; }, [](RunConfig& c) { c.optimizer.clip.kind = ClipKind::none; }},
    {nothing, [](RunConfig& c) { c.optimizer.schedule.kind = ScheduleKind::wsd; },
     [](RunConfig& c) { c.optimizer.schedule.kind = ScheduleKind::inverse_sqrt; },
     [](RunConfig& c) { c.optimizer.schedule.kind = ScheduleKind::constant; }},
    {nothing, [](RunConfig& c) { c.loss.z = 1e-3; }, [](RunConfig& c) { c.loss.max_z = 1e-3; }, [](RunConfig& c) { c.loss.label_smoothing = 0.1; }},
    {nothing, [](RunConfig& c) { attention(c).qk_norm.kind = NormKind::none; },
     [](RunConfig& c) { attention(c).qk_norm = {.kind = NormKind::layernorm, .weight = NormWeight::per_head}; },
     [](RunConfig& c) {
       attention(c).qk_norm = {.kind = NormKind::l2, .weight = NormWeight::none};
       attention(c).scale = {.kind = ScaleKind::learned, .init = 10.0};
     }},
    {nothing, [](RunConfig& c) { c.optimizer.freeze = {"blocks.0.*"}; }},
};

using Row = std::vector<size_t>;                               // which value each factor has
using Pair = std::tuple<size_t, size_t, size_t, size_t>;  // two factors and their values

std::vector<Pair> pairs_of(const Row& row) {
  std::vector<Pair> pairs;
  for (size_t a = 0; a < row.size(); ++a) {
    for (size_t b = a + 1; b < row.size(); ++b) pairs.emplace_back(a, row[a], b, row[b]);
  }
  return pairs;
}

// Row after row, of many drawn ones the one with the most pairs that no row has yet. Even rows are decoders.
std::vector<Row> covering(size_t count, std::set<Pair>& covered) {
  std::mt19937 draw(7);
  std::vector<Row> rows;
  while (rows.size() < count) {
    Row best;
    long most = -1;
    for (int trial = 0; trial < 400; ++trial) {
      Row row;
      for (const auto& values : factors) row.push_back(draw() % values.size());
      row[0] = rows.size() % 2;
      const std::vector<Pair> pairs = pairs_of(row);
      const long fresh = std::count_if(pairs.begin(), pairs.end(), [&](const Pair& pair) { return !covered.contains(pair); });
      if (fresh > most) std::tie(best, most) = std::tuple(row, fresh);
    }
    for (const Pair& pair : pairs_of(best)) covered.insert(pair);
    rows.push_back(best);
  }
  return rows;
}

size_t all_pairs() {
  size_t count = 0;
  for (size_t a = 0; a < factors.size(); ++a) {
    for (size_t b = a + 1; b < factors.size(); ++b) count += factors[a].size() * factors[b].size();
  }
  return count;
}

// Of several documents, which end inside windows.
std::string prepare_documents(const TemporaryFolder& folder) {
  std::vector<std::string> paths;
  for (int document = 0; document < 20; ++document) {
    paths.push_back(folder / cat(document, ".txt"));
    std::ofstream text(paths.back());
    for (int i = 0; i < 15 + document; ++i) text << "line " << i * i % 97 << " of document " << document << "\n";
  }
  prepare_tokens({.files = paths, .out = folder / "text", .tokenizer = "char", .valid = 0.1}, {});
  return folder / "text";
}

}  // namespace

TEST_CASE("any two choices that meet in a step are gone on with exactly", "[unit][R3]") {
  std::set<Pair> covered;
  const std::vector<Row> rows = covering(24, covered);
  CHECK(covered.size() == all_pairs());
  const TemporaryFolder home;
  const std::string text = prepare_documents(home);
  const TinyImages images;
  Cases cases("R3", 8 * 3, 24 * 3);
  for (size_t i = 0; static_cast<int>(3 * i) < cases.wanted(); ++i) {
    RunConfig config;
    if (rows[i][0] == 0) {
      DecoderConfig model;
      model.context = 16;
      config = testing::tiny_run("tiny", model, TokenData{.train = text + "/train"}, {"valid", text + "/valid"});
    } else {
      config = tiny_vision(images);
    }
    config = testing::busy(config);
    config.steps = 8;
    config.ema = {};
    config.loss = {};
    config.micro_batches = 1;
    for (size_t factor = 0; factor < factors.size(); ++factor) factors[factor][rows[i][factor]](config);
    CAPTURE(i, config::print(config));
    testing::resumes_exactly(config, home, {1, 4, 7}, cases);
  }
}

}  // namespace quell
