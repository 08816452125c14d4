// How a plan is shown: as text for people, as JSON for programs.
#include <algorithm>

#include "base/text.h"
#include "tools/plan.h"

namespace quell {
namespace {

std::string line(const std::string& label, const std::string& text) {
  return label + std::string(label.size() < 12 ? 12 - label.size() : 1, ' ') + text + "\n";
}
std::string entry(const std::string& label, const std::string& text) {
  constexpr size_t column = 22;
  return std::string(12, ' ') + label + std::string(label.size() < column ? column - label.size() : 1, ' ') + text + "\n";
}
std::string count(int64_t n) { return human_count(static_cast<double>(n)); }

std::string run_text(const Plan& plan) {
  const std::string step = plan.item == "image" ? cat(plan.batch, " images")
                                                : cat(plan.batch, " samples, ", count(plan.items_per_step), " tokens");
  if (plan.steps == 0) return line("run", cat("steps of ", step, "; how many depends on time or on the data"));
  std::string text = line("run", cat(plan.steps, " steps of ", step));
  text += line("", cat("in all ", human_count(plan.samples()), " samples",
                       plan.item == "token" ? cat(", ", human_count(plan.items()), " tokens") : ""));
  if (plan.epoch_samples) {
    const double passes = plan.samples() / static_cast<double>(*plan.epoch_samples);
    text += line("data", cat(significant(passes, 3), " passes over ", count(*plan.epoch_samples), " samples"));
  }
  const std::string time = human_seconds(plan.seconds), speed = human_count(plan.speed) + "FLOP/s";
  return text + line("time", plan.probed ? cat("not under ", time, " at the ", speed, " of a probe of this machine")
                                         : cat(time, " at ", speed, ", without evaluations"));
}

std::string world_text(const Plan& plan) {
  if (plan.world == 1) return "";
  std::string text = line("world", cat(plan.world, " ranks of ", plan.batch / plan.world, plan.item == "image" ? " images a step" : " samples a step"));
  const std::string takes = plan.bandwidth > 0 ? cat(": ", human_seconds(plan.send_seconds), " at ", human_bytes(plan.bandwidth), "/s, beside backward") : "";
  return text + line("", cat("each sends ", human_bytes(plan.sent_per_step), " a step", takes));
}

std::string fit_text(const Plan& plan) {
  const std::string size = human_bytes(plan.limit);
  const std::string where = plan.limit_text.empty() ? "this machine's " + size : cat(plan.limit_text, " (", size, ")");
  if (plan.over() <= 0) return line("fits", cat("in ", where, ", with ", human_bytes(-plan.over()), " to spare"));
  std::string text = line("does not", cat("fit in ", where, ", by ", human_bytes(plan.over())));
  if (plan.world > 1) return text + line("", "a larger --world or micro_batches leaves each rank fewer samples at a time");
  if (plan.changes.empty()) return text + line("", "no change of a single key makes it fit");
  text += line("", "what would, each alone:");
  for (const FittingChange& change : plan.changes) {
    text += entry(change.setting, cat(" ", human_bytes(change.bytes), " (now ", change.was, ")"));
  }
  return text;
}

// Bytes and counts as integers, as far as these reach.
Json whole(double x) { return x < 0x1p63 ? Json(static_cast<int64_t>(x)) : Json(x); }

Json memory_json(const Plan& plan) {
  Json classes = Json::object();
  for (const MemoryClass& c : plan.memory) {
    std::string key = c.name;
    std::replace(key.begin(), key.end(), ' ', '_');
    classes[key] = whole(c.bytes);
  }
  return {{"peak", whole(total_of(plan.memory))}, {"classes", classes}, {"limit", whole(plan.limit)}, {"fits", plan.over() <= 0}};
}

}  // namespace

std::string text_of(const Plan& plan) {
  const bool frozen = plan.trained < plan.parameters;
  std::string text = line("parameters", cat(count(plan.parameters), frozen ? cat(", of which ", count(plan.trained), " are trained") : ""));
  for (const auto& [part, elements] : plan.parts) text += entry(part, count(elements));
  text += line("compute", cat(human_count(plan.flops_per_item), plan.item == "image" ? "FLOP an " : "FLOP a ", plan.item, ", ", human_count(plan.flops_per_step), "FLOP a step"));
  text += run_text(plan);
  text += world_text(plan);
  text += line("checkpoint", cat(human_bytes(plan.weights_on_disk + plan.moments_on_disk), " each: weights ",
                                 human_bytes(plan.weights_on_disk), ", moments ", human_bytes(plan.moments_on_disk)));
  text += line("memory", human_bytes(total_of(plan.memory)) + (plan.world == 1 ? " at the peak" : " at the peak of each rank"));
  for (const MemoryClass& c : plan.memory) {
    if (c.bytes > 0) text += entry(c.name, human_bytes(c.bytes));
  }
  return text + fit_text(plan);
}

Json json_of(const Plan& plan) {
  Json parts = Json::object(), changes = Json::array();
  for (const auto& [part, elements] : plan.parts) parts[part] = elements;
  for (const FittingChange& c : plan.changes) changes.push_back({{"setting", c.setting}, {"was", c.was}, {"memory", whole(c.bytes)}});
  const auto known = [&](const Json& value) { return plan.steps > 0 ? value : Json(); };
  Json json{{"parameters", {{"all", plan.parameters}, {"trained", plan.trained}, {"parts", parts}}},
            {"flop", {{"per_" + plan.item, plan.flops_per_item}, {"per_step", plan.flops_per_step}}},
            {"steps", known(plan.steps)},
            {"samples", known(whole(plan.samples()))},
            {plan.item + "s", known(whole(plan.items()))},
            {"epoch_samples", plan.epoch_samples ? Json(*plan.epoch_samples) : Json()},
            {"passes", nullptr},
            {"time", {{"seconds", known(plan.seconds)}, {"flop_per_s", plan.speed}, {"probed", plan.probed}}},
            {"world", {{"ranks", plan.world}, {"sent_per_step", whole(plan.sent_per_step)},
                       {"send_seconds", plan.bandwidth > 0 ? Json(plan.send_seconds) : Json()}}},
            {"checkpoint", {{"weights", whole(plan.weights_on_disk)}, {"moments", whole(plan.moments_on_disk)}}},
            {"memory", memory_json(plan)},
            {"changes_that_fit", changes}};
  if (plan.epoch_samples && plan.steps > 0) {
    json["passes"] = plan.samples() / static_cast<double>(*plan.epoch_samples);
  }
  return json;
}

}  // namespace quell
