#include "train/evaluate.h"

#include <algorithm>

#include "base/error.h"
#include "dist/agreement.h"
#include "train/health.h"

namespace quell {

namespace {

// After each round of batches, one a rank: what failed on one rank, or is to stop there, ends it on all.
void settle(const World& world, const Attempt& turn, const Watch& watch) {
  at::Tensor flags = at::tensor({turn.failed() ? 1 : 0, watch.must_stop && watch.must_stop() ? 1 : 0}, at::kLong);
  world.max(flags);
  if (flags[0].item<int64_t>() != 0) turn.settle(world);
  if (flags[1].item<int64_t>() != 0) throw Stopped();
}

// A rank that had no part of the first batch must know what the others send.
HealthSums measured_nothing(HealthSums wanted, const RunConfig& config, const Objective& objective, const EvaluationData& set) {
  const Batch batch = to_tensors(read(set.data, 0, 1));
  Forward forward = forward_of(config, batch, false);
  forward.health = &wanted;
  wanted.watched_BT = batch.answers_BT;
  objective.logits(forward, batch);
  return nothing_of(std::move(wanted));
}

}  // namespace

// Ranks take turns by batch, so that any number of them sees the same samples. All go through as many rounds, the last with or without a
// batch.
Evaluation evaluate_set(const RunConfig& config, const World& world, const Objective& objective, const EvaluationData& set,
                        const Watch& watch) {
  at::NoGradGuard no_gradients;
  Evaluation result{.name = set.name, .totals = {}, .health = {}, .has_top5 = std::holds_alternative<VitConfig>(config.model),
                    .has_exact_match = std::holds_alternative<FixedCopies>(set.data)};
  HealthSums health{.bounds = true, .entropy = true, .exact_logit = true, .layers = {}};
  const int64_t whole = batch_of(config.data), part = whole / (world.size() * config.micro_batches), samples = samples_of(set.data);
  for (int64_t round = 0; round < samples; round += part * world.size()) {
    const int64_t first = round + part * world.rank();
    const Attempt turn([&] {
      if (first >= samples) return;
      const Batch batch = to_tensors(read(set.data, first, std::min(part, samples - first)));
      Forward forward = forward_of(config, batch, false);
      if (first < whole) {  // of the first batch, in however many parts
        forward.health = &health;
        health.watched_BT = batch.answers_BT;
      }
      const at::Tensor logits_NV = objective.logits(forward, batch);
      if (watch.batch) watch.batch(batch, logits_NV);
      result.totals.add(objective.loss(logits_NV, forward, batch));
    });
    settle(world, turn, watch);
  }
  result.totals.reduce(world);
  together(world, [&] {
    if (health.layers.empty()) health = measured_nothing(std::move(health), config, objective, set);
  });
  result.health = report_of(health, world);
  return result;
}

std::vector<Evaluation> evaluate(Run& run, const Watch& watch) {
  std::vector<Evaluation> results;
  const auto all = [&](const std::string& suffix) {
    for (const EvaluationData& set : run.evaluations) {
      results.push_back(evaluate_set(run.config, run.world, run.objective, set, watch));
      results.back().name += suffix;
    }
  };
  all("");
  if (run.ema) {
    const Ema::Instead average(*run.ema);
    all(".ema");
  }
  return results;
}

}  // namespace quell
