// Looks for trouble in health reports: attention logits that saturate the softmax, and attention that looks at one key
// only. It says so; what to do about it is the user's decision.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "stability/health.h"

namespace quell {

namespace {

constexpr double warning_limit = 1e3, critical_limit = 1e4;
constexpr double entropy_limit = 0.05;
constexpr int entropy_reports = 3;

// NaN counts as the largest of all: a maximum that loses it would hide the worst head.
size_t head_of_largest(const std::vector<double>& by_head) {
  const auto below = [](double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; };
  return static_cast<size_t>(std::max_element(by_head.begin(), by_head.end(), below) - by_head.begin());
}

int level_of(double logit, int before) {
  if (std::isnan(logit) || logit > critical_limit) return 2;
  if (logit > warning_limit) return std::max(before, 1);
  // Over only well below the limit: a value that hovers around it is one alarm, not hundreds.
  return logit > warning_limit / 2 ? before : 0;
}

std::string logit_message(const HealthReport::Layer& layer, size_t index, int level, int64_t step) {
  const bool exact = !layer.logit_max.empty();
  const std::vector<double>& logits = exact ? layer.logit_max : layer.logit_bound;
  const size_t head = head_of_largest(logits);
  const double logit = logits[head];
  const std::string where = cat("layer ", index, ": largest attention logit ", exact ? "" : "(upper bound) ");
  const std::string when = cat(" in head ", head, " at step ", step);
  if (std::isnan(logit)) return cat(where, "is not a number", when);
  return cat(where, significant(logit, 4), " is above ", level == 2 ? critical_limit : warning_limit, when,
             "; model.attention.qk_norm bounds it, a lower optimizer.lr slows its growth");
}

}  // namespace

std::vector<Alarm> HealthAlarms::look(const HealthReport& report, int64_t step) {
  std::vector<Alarm> alarms;
  logit_level_.resize(std::max(logit_level_.size(), report.layers.size()));
  low_entropy_.resize(logit_level_.size());
  for (size_t i = 0; i < report.layers.size(); ++i) {
    const HealthReport::Layer& layer = report.layers[i];
    const std::vector<double>& logits = layer.logit_max.empty() ? layer.logit_bound : layer.logit_max;
    if (!logits.empty()) {
      const int level = level_of(logits[head_of_largest(logits)], logit_level_[i]);
      if (level > logit_level_[i]) alarms.push_back({level == 2, logit_message(layer, i, level, step)});
      logit_level_[i] = level;
    }
    const std::vector<double>& heads = layer.entropy_relative;
    if (heads.empty()) continue;
    const double mean = std::accumulate(heads.begin(), heads.end(), 0.0) / static_cast<double>(heads.size());
    low_entropy_[i] = mean < entropy_limit ? low_entropy_[i] + 1 : 0;
    if (low_entropy_[i] != entropy_reports) continue;
    alarms.push_back({true, cat("layer ", i, ": attention has collapsed: relative entropy ", significant(mean, 2),
                                " is below ", entropy_limit, " in ", entropy_reports, " reports running at step ",
                                step)});
  }
  return alarms;
}

State HealthAlarms::state() const {
  State state;
  for (size_t i = 0; i < logit_level_.size(); ++i) {
    state.integers[cat("level.", i)] = logit_level_[i];
    state.integers[cat("low.", i)] = low_entropy_[i];
  }
  return state;
}

void HealthAlarms::restore(const State& stored) {
  logit_level_.assign(stored.integers.size() / 2, 0);
  low_entropy_ = logit_level_;
  for (size_t i = 0; i < logit_level_.size(); ++i) {
    logit_level_[i] = static_cast<int>(stored.integers.at(cat("level.", i)));
    low_entropy_[i] = static_cast<int>(stored.integers.at(cat("low.", i)));
  }
}

}  // namespace quell
