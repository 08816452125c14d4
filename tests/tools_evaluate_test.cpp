// A run's weights evaluated again: the numbers of the run's own metrics, to the last bit, and what is shown besides.
#include <catch2/catch.hpp>

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "config/load.h"
#include "tools/evaluate.h"
#include "train/session.h"
#include "train_support.h"

namespace quell {
namespace {

std::string trained(RunConfig config, const std::string& folder) {
  config.threads = 1;
  REQUIRE(run_training(config, {.folder = folder, .quiet = true}) == 0);
  return folder;
}

Json last_row(const std::string& run) {
  const std::string text = files::read(run + "/metrics.jsonl");
  const size_t end = text.size() - 1, begin = text.rfind('\n', end - 1) + 1;
  return parse_json(text.substr(begin, end - begin), "metrics.jsonl");
}

// Each number that both have under its name, "valid.loss" there and "loss" here; all of them must be the same.
void check_same(const Json& row, const std::string& set, const SetReport& report) {
  const Json ours = to_json(report);
  int compared = 0;
  for (const auto& [key, value] : row.items()) {
    if (!key.starts_with(set + ".") || key.starts_with(set + ".ema.")) continue;
    INFO(key);
    REQUIRE(ours.contains(key.substr(set.size() + 1)));
    CHECK(ours.at(key.substr(set.size() + 1)) == value);
    ++compared;
  }
  CHECK(compared >= 10);
}

}  // namespace

TEST_CASE("a text model evaluated again gives the numbers that training reported, to the last bit", "[unit]") {
  const testing::TinyText text;
  RunConfig config = testing::tiny_config(text);
  config.micro_batches = GENERATE(1, 2);
  const std::string run = trained(config, text.folder() / "run");
  const auto reports = evaluate_run({.run = run});
  REQUIRE(reports.size() == 1);
  check_same(last_row(run), "valid", reports[0]);
  // All its characters are one byte.
  REQUIRE(reports[0].bits_per_byte);
  CHECK(*reports[0].bits_per_byte == Approx(reports[0].evaluation.totals.cross_entropy() / std::log(2.0)).epsilon(1e-12));
  CHECK(reports[0].confusion.empty());
}

TEST_CASE("bits per byte count the bytes of the characters that are scored", "[unit]") {
  const testing::TemporaryFolder folder;
  std::ofstream out(folder / "text.txt");
  for (int i = 0; i < 3000; ++i) out << (i * i % 7 < 3 ? "\u00e9" : "\u00e8");
  out.close();
  prepare_tokens({.files = {folder / "text.txt"}, .out = folder / "text", .tokenizer = "char", .valid = 0.1}, {});
  const testing::TinyText text;
  RunConfig config = testing::tiny_config(text);
  testing::data_of(config).train = folder / "text/train";
  config.evaluate.sets = {{"valid", folder / "text/valid"}};
  const auto reports = evaluate_run({.run = trained(config, folder / "run")});
  CHECK(*reports.at(0).bits_per_byte == Approx(reports[0].evaluation.totals.cross_entropy() / (2 * std::log(2.0))).epsilon(1e-12));
}

TEST_CASE("a vision model evaluated again gives the same numbers, and a confusion table that adds up", "[unit]") {
  const testing::TinyImages images;
  RunConfig config = testing::tiny_vision(images);
  config.evaluate.batches = std::nullopt;
  const std::string run = trained(config, images.folder() / "run");
  const auto reports = evaluate_run({.run = run});
  check_same(last_row(run), "test", reports.at(0));
  int64_t all = 0, right = 0;
  for (size_t i = 0; i < 3; ++i) {
    int64_t row = 0;
    for (size_t j = 0; j < 3; ++j) row += reports[0].confusion.at(i).at(j);
    CHECK(row == (i < 2 ? 11 : 10));  // of 32 images, by label i % 3
    all += row;
    right += reports[0].confusion[i][i];
  }
  CHECK(all == 32);
  CHECK(static_cast<double>(right) / 32 == reports[0].evaluation.totals.accuracy());
  CHECK(to_text(reports[0]).find("class  0") != std::string::npos);
}

TEST_CASE("another set and fewer batches can be asked for", "[unit]") {
  const testing::TinyImages images;
  const std::string run = trained(testing::tiny_vision(images), images.folder() / "run");
  const auto reports = evaluate_run({.run = run, .data = {images.train()}, .batches = 3});
  CHECK(reports.at(0).samples == 24);
  CHECK(reports[0].evaluation.name == images.train());
  CHECK(evaluate_run({.run = run, .data = {images.train()}, .batches = 0}).at(0).samples == 64);
}

TEST_CASE("the moving average is evaluated beside the weights, saved, and evaluated again to the bit", "[unit]") {
  const testing::TinyText text;
  RunConfig config = testing::tiny_config(text);
  config.ema = 0.5;
  const std::string run = trained(config, text.folder() / "run");
  const Json row = last_row(run);
  const auto weights = evaluate_run({.run = run}), average = evaluate_run({.run = run, .ema = true});
  CHECK(row.at("valid.loss") == to_json(weights.at(0)).at("loss"));
  CHECK(row.at("valid.ema.loss") == to_json(average.at(0)).at("loss"));
  CHECK(row.at("valid.ema.loss") != row.at("valid.loss"));
}

TEST_CASE("a dump holds each target's prediction, and the attention of the samples that were chosen", "[unit]") {
  const testing::TinyImages images;
  RunConfig config = testing::tiny_vision(images);
  config.evaluate.batches = std::nullopt;
  const std::string run = trained(config, images.folder() / "run"), out = images.folder() / "dump";
  const auto reports = evaluate_run({.run = run, .dump = out, .samples = {5, 0}});
  const SafetensorsFile all(out + "/test.predictions.safetensors"), chosen(out + "/test.samples.safetensors");
  const at::Tensor right = all.read("predictions").eq(all.read("targets"));
  CHECK(right.sum().item<double>() / 32 == reports.at(0).evaluation.totals.accuracy());
  CHECK(at::equal(chosen.read("samples"), at::tensor({int64_t{5}, int64_t{0}})));
  CHECK(at::equal(chosen.read("targets"), all.read("targets").index_select(0, chosen.read("samples"))));
  CHECK(at::equal(chosen.read("predictions"), chosen.read("logits").argmax(1)));
  const at::Tensor attention = chosen.read("attention");
  REQUIRE(attention.sizes() == at::IntArrayRef({2, 2, 2, 9, 9}));  // samples, layers, heads, patches
  CHECK(at::allclose(attention.sum(-1), at::ones({2, 2, 2, 9}), 0, 9 * std::ldexp(1.0, -23)));
  CHECK_THROWS_WITH(evaluate_run({.run = run, .dump = out}), Catch::EndsWith("test.predictions.safetensors exists already; choose another folder"));
  CHECK_THROWS_WITH(evaluate_run({.run = run, .dump = out + "2", .samples = {32}}), Catch::Contains("32 is not among the 32 samples"));
}

TEST_CASE("a dump of text has the attention of a causal model", "[unit]") {
  const testing::TinyText text;
  const std::string run = trained(testing::tiny_config(text), text.folder() / "run"), out = text.folder() / "dump";
  evaluate_run({.run = run, .dump = out, .samples = {1}});
  const SafetensorsFile chosen(out + "/valid.samples.safetensors");
  const at::Tensor attention = chosen.read("attention");
  REQUIRE(attention.sizes() == at::IntArrayRef({1, 2, 2, 16, 16}));
  CHECK(at::equal(attention, attention.tril()));
  CHECK(chosen.shape("tokens") == std::vector<int64_t>{1, 16});
}

TEST_CASE("data that are drawn have neither a path nor an end", "[unit]") {
  const testing::TemporaryFolder folder;
  std::vector<config::Override> overrides;
  for (const char* setting : {"steps=2", "data.batch=4", "data.length=4", "model.context=8", "evaluate.batches=2"}) overrides.push_back({setting, false});
  const std::string file = std::string(QUELL_SOURCE) + "/configs/lab/copy_rmsnorm.yaml";
  const std::string run = trained(config::load<RunConfig>(config::Source::from_file(file, overrides)), folder / "run");
  CHECK(to_json(evaluate_run({.run = run}).at(0)).contains("exact_match"));
  CHECK_THROWS_WITH(evaluate_run({.run = run, .batches = 0}), Catch::EndsWith("copy data have no end; say how many with --batches N"));
  CHECK_THROWS_WITH(evaluate_run({.run = run, .data = {"data/kjv"}}), Catch::Contains("are drawn, not read"));
}

TEST_CASE("two sets do not write one dump", "[unit]") {
  const testing::TinyImages images;
  const std::string run = trained(testing::tiny_vision(images), images.folder() / "run"), out = images.folder() / "dump";
  CHECK_THROWS_WITH(evaluate_run({.run = run, .data = {images.test(), images.test()}, .dump = out}), Catch::Contains("gives no file name of its own"));
}

TEST_CASE("what cannot be evaluated says why", "[unit]") {
  const testing::TinyText text;
  const testing::TinyImages images;
  RunConfig config = testing::tiny_config(text);
  config.evaluate.sets.clear();
  const std::string run = trained(config, text.folder() / "run");
  CHECK_THROWS_WITH(evaluate_run({.run = run}), Catch::EndsWith("run: its configuration names no evaluation set; give one with --data"));
  CHECK_THROWS_WITH(evaluate_run({.run = run, .ema = true}), Catch::Contains("ema.safetensors: not there"));
  CHECK_THROWS_AS(evaluate_run({.run = run, .data = {images.train()}}), DataError);
  CHECK_THROWS_WITH(evaluate_run({.run = run + "/none"}), Catch::Contains("no such folder"));
}

}  // namespace quell
