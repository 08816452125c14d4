#include "train/report.h"

#include "base/text.h"
#include "nn/count.h"
#include "train/metrics.h"
#include "train/sample.h"

namespace quell {
namespace {

std::string evaluation_text(const Evaluation& evaluation, int64_t done) {
  std::string text = cat("step ", done, ": ", evaluation.name, " loss ", significant(evaluation.totals.cross_entropy(), 5));
  double logit = 0, entropy = 0;
  bool measured = false, has_entropy = false;
  for (const HealthReport::Layer& layer : evaluation.health.layers) {
    for (const double x : layer.logit_max) {
      logit = measured ? std::max(logit, x) : x;
      measured = true;
    }
    double mean = 0;
    for (const double x : layer.entropy) mean += x / static_cast<double>(layer.entropy.size());
    if (!layer.entropy.empty()) {
      entropy = has_entropy ? std::min(entropy, mean) : mean;
      has_entropy = true;
    }
  }
  const auto percent = [](double share) { return significant(100 * share, 4) + " %"; };
  if (evaluation.has_top5 || evaluation.has_exact_match) text += ", accuracy " + percent(evaluation.totals.accuracy());
  if (evaluation.has_exact_match) text += ", copied exactly " + percent(evaluation.totals.exact_match());
  if (measured) text += ", largest logit " + significant(logit, 3);
  if (has_entropy) text += ", smallest entropy " + significant(entropy, 3);
  return text;
}

}  // namespace

Report::Report(RunFolder& folder, const RunConfig& config, const ReportOptions& options)
    : folder_(folder), config_(config), options_(options), console_(options.quiet) {}

bool Report::due(int64_t step) const { return step == 0 || (step + 1) % config_.report.every == 0; }

void Report::step(const Run& run, int64_t step, const StepResult& result, const HealthSums& health) {
  const double now = seconds();
  const double training = now - excluded_seconds_;
  std::optional<HealthReport> measured;
  if (health.bounds) measured = report_of(health, run.world);
  Json row{{"step", step + 1}, {"time", now}};
  row.update(step_row(run, step, result, measured ? &*measured : nullptr));
  const double norm = result.norm.item<double>();

  ProgressLine line{.step = step + 1, .steps = run.steps, .loss = result.totals.cross_entropy(), .lr = row["lr"], .grad_norm = norm, .items = run.items()};
  if (last_step_ >= 0 && step > last_step_ && training > last_seconds_) {
    const double seconds = (training - last_seconds_) / static_cast<double>(step - last_step_);
    line.items_per_s = static_cast<double>(run.items_per_step()) / seconds;
    row[std::string(run.items()) + "_per_s"] = line.items_per_s;
    if (options_.peak_flops > 0) {
      line.peak_share = static_cast<double>(run.batch) / seconds * flops_per_sample(run.config.model) / options_.peak_flops;
    }
    if (step + 1 < run.steps) line.seconds_left = seconds * static_cast<double>(run.steps - step - 1);
  }
  if (measured) {
    for (const Alarm& alarm : alarms_.look(*measured, step + 1)) console_.warn(cat(alarm.critical ? "critical: " : "", alarm.message));
  }
  if (norm == 0 && row["lr"] > 0.0 && !warned_of_no_gradient_) {
    console_.warn(cat("step ", step + 1, ": the gradient is exactly 0, so nothing is learned; are the weights or activations past fp32's range?"));
    warned_of_no_gradient_ = true;
  }
  folder_.write_row(row);
  if (due(step) || step + 1 == run.steps) console_.progress(line);
  last_step_ = step;
  last_seconds_ = training;
}

void Report::skipped(const Run& run, int64_t step, const StepResult& result) {
  console_.warn(cat("step ", step + 1, " left out: the loss is ", result.totals.objective(), " and the gradient's norm ",
                    result.norm.item<double>(), "; ", run.finite.in_a_row(), " in a row (stability.skip_limit ",
                    run.config.stability.skip_limit, ")"));
}

void Report::evaluation(const Run& run, int64_t done, const std::vector<Evaluation>& results, double took,
                        const std::function<void(int64_t)>& each) {
  if (results.empty() && config_.evaluate.sample == 0) return;
  const double begin = seconds();
  Json row{{"step", done}, {"time", begin}};
  for (const Evaluation& evaluation : results) {
    add_evaluation(row, evaluation);
    console_.say(evaluation_text(evaluation, done));
  }
  if (config_.evaluate.sample > 0) {
    const std::string text = sample_text(run, each);
    row["sample"] = text;
    console_.say(text);
  }
  folder_.write_row(row);
  last_evaluation_.clear();
  for (const auto& [key, value] : row.items()) {
    if (key.find('.') != std::string::npos && value.is_number()) last_evaluation_[key] = value.get<double>();
  }
  excluded_seconds_ += took + seconds() - begin;
}

State Report::state() const {
  State state{{}, {{"metrics_bytes", static_cast<int64_t>(folder_.metrics_bytes())}, {"warned_of_no_gradient", warned_of_no_gradient_}}, {{"seconds", seconds()}}};
  add_part(state, "alarms", alarms_.state());
  add_part(state, "last", {{}, {}, last_evaluation_});
  return state;
}

void Report::restore(const State& stored) {
  earlier_seconds_ = stored.numbers.at("seconds");
  since_start_.restart();
  warned_of_no_gradient_ = stored.integers.at("warned_of_no_gradient") != 0;
  alarms_.restore(part_of(stored, "alarms"));
  last_evaluation_ = part_of(stored, "last").numbers;
  const int64_t bytes = stored.integers.at("metrics_bytes");
  const auto aside = folder_.set_metrics_aside(static_cast<uint64_t>(bytes));
  const bool is_new = folder_.metrics_bytes() == 0;  // the run goes on from another one's checkpoint
  if (!aside && !is_new) console_.warn(cat(folder_.path(), "/metrics.jsonl is shorter than at the checkpoint: rows of earlier steps are missing"));
  if (aside && *aside > 0) console_.say(cat("metrics     ", *aside, " rows of steps that will be made again are now in metrics.set_aside.jsonl"));
}

}  // namespace quell
