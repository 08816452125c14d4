#include "train/changes.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/keys.h"
#include "config/print.h"

namespace quell {
namespace {

struct Rule {
  const char* key;  // itself, or a section with all in it; the longest that fits counts
  ChangeKind kind;
  const char* why;
};
constexpr ChangeKind safe = ChangeKind::safe, numbers = ChangeKind::numbers, impossible = ChangeKind::impossible;

constexpr Rule rules[] = {
    {"name", safe, ""},
    {"seed", numbers, "data order, dropout and augmentation follow from it"},
    {"steps", numbers, "the schedule runs over the plan"},
    {"tokens", safe, ""},  // of the plan, which `steps` holds
    {"epochs", safe, ""},
    {"time", safe, ""},
    {"micro_batches", numbers, "sums are rounded otherwise"},
    {"precision", numbers, "sums are rounded otherwise"},
    {"device", numbers, "sums are rounded otherwise"},
    {"threads", numbers, "sums are rounded otherwise"},
    {"kernels", numbers, "sums are rounded otherwise"},
    {"model", impossible, "the saved weights are of another model"},
    {"model.dropout", numbers, "other activations are dropped"},
    {"model.drop_path", numbers, "other blocks are dropped"},
    {"model.attention.dropout", numbers, "other attention weights are dropped"},
    {"model.init", safe, ""},  // initial values are behind the run
    {"data", numbers, "other samples are seen"},
    {"data.kind", impossible, "the position in the data would mean nothing"},
    {"data.batch", impossible, "the position in the data is counted in steps of this size"},
    {"data.train", safe, ""},  // the data themselves are compared by their digest
    {"data.decode_threads", safe, ""},
    {"data.verify", safe, ""},
    {"evaluate", safe, ""},
    {"loss", numbers, "another loss is minimised"},
    {"optimizer", numbers, "updates are others"},
    {"optimizer.kind", impossible, "the saved moments are another optimizer's"},
    {"optimizer.freeze", impossible, "the saved moments are of other parameters"},
    {"health", safe, ""},
    {"stability", safe, ""},
    {"checkpoint", safe, ""},
    {"parallel", safe, ""},
    {"resume", safe, ""},
    {"stop_code", safe, ""},
    {"report", safe, ""},
    {"ema", numbers, "the average is another"},
};

bool is_within(const std::string& key, const std::string& section) {
  return key == section || (key.starts_with(section) && key[section.size()] == '.');
}

// A plan of another length stretches the schedule, unless the schedule's own length is stated.
void judge_plan(Change& change, const RunConfig& before, const RunConfig& after) {
  const ScheduleConfig &old = before.optimizer.schedule, &now = after.optimizer.schedule;
  const bool stated = now.steps && (old.steps ? *old.steps : before.steps.value_or(0)) == *now.steps;
  if (now.kind == ScheduleKind::constant || now.kind == ScheduleKind::inverse_sqrt || stated) {
    change.kind = ChangeKind::safe;
  } else {
    change.why = cat("optimizer.schedule.steps=", change.before, " keeps the learning rates as they were planned; --accept steps stretches them");
  }
}

}  // namespace

Change judged(const std::string& key) {
  const Rule* best = nullptr;
  for (const Rule& rule : rules) {
    if (is_within(key, rule.key) && (best == nullptr || std::string_view(rule.key).size() > std::string_view(best->key).size())) best = &rule;
  }
  if (best == nullptr) throw Bug(key + ": no rule says what a change of it means for a resumed run");
  return {.key = key, .before = {}, .after = {}, .kind = best->kind, .why = best->why};
}

std::vector<Change> changes(const RunConfig& before, const RunConfig& after) {
  const auto old = config::flat(before), now = config::flat(after);
  std::vector<std::string> keys;
  for (const auto& [key, value] : old) keys.push_back(key);
  for (const auto& [key, value] : now) {
    if (!old.contains(key)) keys.push_back(key);
  }
  const auto value_of = [](const auto& all, const std::string& key) { return all.contains(key) ? all.at(key) : "not there"; };
  std::vector<Change> found;
  for (const std::string& key : keys) {
    Change change = judged(key);
    change.before = value_of(old, key);
    change.after = value_of(now, key);
    if (change.before == change.after || key == "resume") continue;
    if (key == "steps") judge_plan(change, before, after);
    if (key == "ema" && before.ema.has_value() != after.ema.has_value()) {
      change.kind = ChangeKind::impossible;
      change.why = "the checkpoint has no such average, or it would be lost";
    }
    if (key == "optimizer.schedule.steps" && after.optimizer.schedule.steps == before.steps && !before.optimizer.schedule.steps) {
      change.kind = ChangeKind::safe;  // it states what followed from the plan
    }
    const auto is_cpu = [](const RunConfig& config) { return !config.device.starts_with("cuda"); };
    if (key == "device" && is_cpu(before) && is_cpu(after)) change.kind = ChangeKind::safe;
    if (key == "precision" && (before.precision == Precision::fp64) != (after.precision == Precision::fp64)) {
      change.kind = ChangeKind::impossible;
      change.why = "the saved weights are of another type";
    }
    found.push_back(change);
  }
  return found;
}

std::vector<std::string> change_lines(const std::vector<Change>& changes) {
  std::vector<std::string> lines;
  for (const Change& change : changes) {
    lines.push_back(cat(change.key, ": ", change.before, " -> ", change.after, change.kind == ChangeKind::safe ? "" : " (" + change.why + ")"));
  }
  return lines;
}

void require_accepted(const std::vector<Change>& changes, const std::vector<std::string>& accepted) {
  for (const std::string& key : accepted) {
    const auto& keys = config::keys_of<RunConfig>();
    if (std::none_of(keys.begin(), keys.end(), [&](const config::Key& known) { return is_within(known.path, key) || config::matches(known, key); })) {
      throw UsageError("--accept " + key + ": there is no such key");
    }
  }
  std::vector<Change> refused, unaccepted;
  for (const Change& change : changes) {
    const auto covers = [&](const std::string& key) { return is_within(change.key, key); };
    const bool is_accepted = std::any_of(accepted.begin(), accepted.end(), covers);
    if (change.kind == ChangeKind::impossible) refused.push_back(change);
    if (change.kind == ChangeKind::numbers && !is_accepted) unaccepted.push_back(change);
  }
  if (refused.empty() && unaccepted.empty()) return;
  std::string text = "resume: the run file is not what this run was begun with";
  if (!refused.empty()) text += "\n  cannot be changed in a run:\n    " + join(change_lines(refused), "\n    ");
  if (!unaccepted.empty()) text += "\n  would change its numbers (--accept KEY takes it):\n    " + join(change_lines(unaccepted), "\n    ");
  throw UsageError(text + "\n  as it was, with all overrides of then, it stands in the run's config.yaml");
}

}  // namespace quell
