// What this program is for, as a test: at a learning rate that is far too high, attention without QK-norm collapses within 40 to 100 steps
// (huge logits, no entropy), and with it stays calm. Byte text of the King James version where it was prepared.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "config/load.h"
#include "train/evaluate.h"
#include "train/step.h"

namespace quell {
namespace {

struct Calm {
  double largest_logit = 0, smallest_entropy = INFINITY;
};

// On the fixed held-out batch after the last step: the largest logit of all heads, and the smallest layer's entropy.
Calm after_all_steps(const std::string& file, int64_t seed, const std::vector<std::string>& settings) {
  const std::string source = QUELL_SOURCE;
  std::vector<config::Override> overrides{{cat("seed=", seed), false}};
  for (const std::string& setting : settings) overrides.push_back({setting, false});
  Run run(config::load<RunConfig>(config::Source::from_file(source + "/configs/lab/" + file, overrides)), {});
  for (int64_t step = 0; step < run.steps; ++step) train_step(run, step, nullptr);
  Calm seen;
  const std::vector<Evaluation> results = evaluate(run);
  for (const HealthReport::Layer& layer : results.at(0).health.layers) {
    double entropy = 0;
    for (const double head : layer.entropy) entropy += head / static_cast<double>(layer.entropy.size());
    seen.smallest_entropy = std::min(seen.smallest_entropy, entropy);
    for (const double head : layer.logit_max) seen.largest_logit = std::max(seen.largest_logit, head);
  }
  WARN(file << " " << join(settings, " ") << " seed " << seed << ": largest logit " << seen.largest_logit << ", smallest entropy "
            << seen.smallest_entropy);
  return seen;
}

const std::vector<std::string> text{std::string("data.train=") + QUELL_SOURCE + "/data/kjv_bytes/train",
                                    std::string("evaluate.sets.0.data=") + QUELL_SOURCE + "/data/kjv_bytes/valid"};

std::vector<std::string> with(std::vector<std::string> settings, const std::string& more) {
  settings.push_back(more);
  return settings;
}

}  // namespace

TEST_CASE("attention without QK-norm collapses at a high learning rate, and stays calm with it", "[slow]") {
  REQUIRE(std::filesystem::exists(std::string(QUELL_SOURCE) + "/data/kjv_bytes/train"));  // scripts/prepare_kjv
  const int64_t seed = GENERATE(1, 2, 3);
  const Calm none = after_all_steps("collapse_none.yaml", seed, text);
  CHECK(none.largest_logit > 300);
  CHECK(none.smallest_entropy < 0.1);
  for (const char* kind : {"rmsnorm", "layernorm"}) {
    const Calm normed = after_all_steps("collapse_qk.yaml", seed, with(text, cat("model.attention.qk_norm.kind=", kind)));
    CHECK(normed.largest_logit < 50);
    CHECK(normed.smallest_entropy > 0.3);
  }
  const Calm weightless = after_all_steps("collapse_qk.yaml", seed, with(text, "model.attention.qk_norm.weight=none"));
  CHECK(weightless.largest_logit <= std::sqrt(32) * (1 + 1e-5));  // the bound sqrt(head width), and fp32's rounding of it
  CHECK(weightless.smallest_entropy > 1.4);
}

TEST_CASE("so does a vision transformer's, on Fashion-MNIST", "[slow]") {
  const int64_t seed = GENERATE(1, 2);
  const Calm none = after_all_steps("vit_collapse_none.yaml", seed, {});
  CHECK(none.largest_logit > 300);
  CHECK(none.smallest_entropy < 0.3);
  const Calm normed = after_all_steps("vit_collapse_qk.yaml", seed, {});
  CHECK(normed.largest_logit < 20);
  CHECK(normed.smallest_entropy > 2);
}

}  // namespace quell
