#include "train/evaluate.h"

#include <algorithm>

#include "train/health.h"

namespace quell {

// Ranks take turns by batch, so that any number of them sees the same samples.
Evaluation evaluate_set(const RunConfig& config, const World& world, const Objective& objective, const EvaluationData& set,
                        const Observe& observe) {
  at::NoGradGuard no_gradients;
  Evaluation result{.name = set.name, .totals = {}, .health = {}, .has_top5 = std::holds_alternative<VitConfig>(config.model),
                    .has_exact_match = std::holds_alternative<FixedCopies>(set.data)};
  HealthSums health{.bounds = true, .entropy = true, .exact_logit = true, .layers = {}};
  const int64_t whole = batch_of(config.data), part = whole / (world.size() * config.micro_batches), samples = samples_of(set.data);
  int64_t turn = 0;
  for (int64_t first = 0; first < samples; first += part, ++turn) {
    if (turn % world.size() != world.rank()) continue;
    const Batch batch = to_tensors(read(set.data, first, std::min(part, samples - first)));
    Forward forward = forward_of(config, batch, false);
    if (first < whole) {  // of the first batch, in however many parts
      forward.health = &health;
      health.watched_BT = batch.answers_BT;
    }
    const at::Tensor logits_NV = objective.logits(forward, batch);
    if (observe) observe(batch, logits_NV);
    result.totals.add(objective.loss(logits_NV, forward, batch));
  }
  result.totals.reduce(world);
  result.health = report_of(health, world);
  return result;
}

std::vector<Evaluation> evaluate(Run& run, const Observe& observe) {
  std::vector<Evaluation> results;
  const auto all = [&](const std::string& suffix) {
    for (const EvaluationData& set : run.evaluations) {
      results.push_back(evaluate_set(run.config, run.world, run.objective, set, observe));
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
