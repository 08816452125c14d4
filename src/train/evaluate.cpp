#include "train/evaluate.h"

#include <algorithm>

#include "train/health.h"

namespace quell {
namespace {

// Ranks take turns by batch, so that any number of them sees the same samples.
Evaluation evaluate_set(Run& run, const EvaluationData& set) {
  at::NoGradGuard no_gradients;
  Evaluation result{.name = set.name, .totals = {}, .health = {}, .has_top5 = std::holds_alternative<Vit>(run.model)};
  HealthSums health{.bounds = true, .entropy = true, .exact_logit = true, .layers = {}};
  const int64_t step = run.micro_batch;
  int64_t turn = 0;
  for (int64_t first = 0; first < samples_of(set.data); first += step, ++turn) {
    if (turn % run.world.size() != run.world.rank()) continue;
    const Batch batch = to_tensors(read(set.data, first, std::min(step, samples_of(set.data) - first)));
    Forward forward = run.forward(batch, false);
    if (first < run.batch) forward.health = &health;  // of the first batch, in however many parts
    result.totals.add(run.objective(forward, batch));
  }
  result.totals.reduce(run.world);
  result.health = report_of(health, run.world);
  return result;
}

}  // namespace

std::vector<Evaluation> evaluate(Run& run) {
  std::vector<Evaluation> results;
  for (const EvaluationData& set : run.evaluations) results.push_back(evaluate_set(run, set));
  return results;
}

}  // namespace quell
