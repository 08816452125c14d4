#include "train/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "optim/schedule.h"

namespace quell {
namespace {

using Heads = std::vector<double>;

Json array(const Heads& heads) {
  Json json = Json::array();
  for (const double x : heads) json.push_back(number(x));
  return json;
}

double largest(const Heads& heads) { return *std::max_element(heads.begin(), heads.end()); }
double average(const Heads& heads) { return std::accumulate(heads.begin(), heads.end(), 0.0) / static_cast<double>(heads.size()); }
// RMS of heads of equal size from the RMS of each.
double rms(const Heads& heads) {
  double sum = 0;
  for (const double x : heads) sum += x * x;
  return std::sqrt(sum / static_cast<double>(heads.size()));
}

}  // namespace

Json number(double x) {
  if (std::isfinite(x)) return x;
  return std::isnan(x) ? "nan" : x > 0 ? "inf" : "-inf";
}

Json step_row(const Run& run, int64_t step, const StepResult& result, const HealthReport* health) {
  Json row{{"step", step + 1}};
  add_losses(row, result.totals, run.config.loss);
  row["grad_norm"] = number(result.norm.item<double>());
  row["lr"] = run.config.optimizer.lr * schedule_factor(run.config.optimizer.schedule, step, run.steps);
  row[run.items()] = (step + 1) * run.items_per_step();
  if (health != nullptr) {
    add_health(row, "", *health);
    add_weights(row, layer_weights(run));
  }
  return row;
}

void add_losses(Json& row, const LossTotals& totals, const LossConfig& loss) {
  row["loss"] = number(totals.cross_entropy());
  if (loss.z > 0) row["aux.z"] = number(totals.z());
  if (loss.max_z > 0) row["aux.max_z"] = number(totals.max_z());
  row["log_z.mean"] = number(totals.log_z_mean());
  row["log_z.max"] = number(totals.log_z_max());
}

void add_health(Json& row, const std::string& prefix, const HealthReport& health) {
  const auto add = [&](const char* key, auto of, double (*combine)(const Heads&)) {
    Json layers = Json::array(), heads = Json::array();
    bool any = false;
    for (const HealthReport::Layer& layer : health.layers) {
      const Heads& values = of(layer);
      any = any || !values.empty();
      layers.push_back(values.empty() ? Json() : number(combine(values)));
      heads.push_back(values.empty() ? Json() : array(values));
    }
    if (!any) return;
    row[prefix + "attention." + key] = layers;
    row[prefix + "heads." + key] = heads;
  };
  using Layer = HealthReport::Layer;
  add("logit_bound", [](const Layer& l) -> const Heads& { return l.logit_bound; }, largest);
  add("logit_max", [](const Layer& l) -> const Heads& { return l.logit_max; }, largest);
  add("entropy", [](const Layer& l) -> const Heads& { return l.entropy; }, average);
  add("entropy_relative", [](const Layer& l) -> const Heads& { return l.entropy_relative; }, average);
  add("q_rms", [](const Layer& l) -> const Heads& { return l.q_rms; }, rms);
  add("k_rms", [](const Layer& l) -> const Heads& { return l.k_rms; }, rms);
  add("copy_mass", [](const Layer& l) -> const Heads& { return l.copy_mass; }, largest);
}

void add_weights(Json& row, const std::vector<LayerWeights>& layers) {
  Json low = Json::array(), high = Json::array(), scale = Json::array();
  bool norms = false, scales = false;
  for (const LayerWeights& layer : layers) {
    low.push_back(layer.has_norm ? number(layer.norm_min) : Json());
    high.push_back(layer.has_norm ? number(layer.norm_max) : Json());
    scale.push_back(layer.scale.empty() ? Json() : layer.scale.size() == 1 ? number(layer.scale[0]) : array(layer.scale));
    norms = norms || layer.has_norm;
    scales = scales || !layer.scale.empty();
  }
  if (norms) {
    row["norm_weight.min"] = low;
    row["norm_weight.max"] = high;
  }
  if (scales) row["scale"] = scale;
}

void add_evaluation(Json& row, const Evaluation& evaluation) {
  const std::string prefix = evaluation.name + ".";
  row[prefix + "loss"] = number(evaluation.totals.cross_entropy());
  row[prefix + "accuracy"] = number(evaluation.totals.accuracy());
  if (evaluation.has_top5) row[prefix + "accuracy_top5"] = number(evaluation.totals.top5());
  if (evaluation.has_exact_match) row[prefix + "exact_match"] = number(evaluation.totals.exact_match());
  add_health(row, prefix, evaluation.health);
}

}  // namespace quell
