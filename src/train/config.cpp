#include "train/config.h"

#include <algorithm>
#include <regex>
#include <set>

#include "base/text.h"

namespace quell {
namespace {

bool decays(const ScheduleConfig& schedule) {
  return schedule.kind == ScheduleKind::cosine || schedule.kind == ScheduleKind::linear || schedule.kind == ScheduleKind::wsd;
}

// The divisors of `batch` that are nearest to `wanted`, for the error message.
std::string nearest_divisors(int64_t batch, int64_t wanted) {
  wanted = std::min(wanted, batch);
  int64_t below = 1, above = batch;
  for (int64_t d = 1; d <= batch; ++d) {
    if (batch % d != 0) continue;
    if (d <= wanted) below = d;
    if (d >= wanted) { above = d; break; }
  }
  return below == above ? cat("the nearest that does is ", below) : cat("the nearest that do are ", below, " and ", above);
}

void check_plan(Problems& problems, const RunConfig& c) {
  const bool plan = c.steps || c.tokens || c.epochs;
  if (!plan && !c.time) problems.add("steps", "nothing says when the run ends", "set steps, tokens, epochs or time");
  if (!plan && c.time && decays(c.optimizer.schedule) && !c.optimizer.schedule.steps) {
    problems.add("optimizer.schedule.steps", cat("a ", name_of(c.optimizer.schedule.kind), " schedule needs an end, and time is no plan"),
                 "set optimizer.schedule.steps, or steps, tokens or epochs");
  }
}

const char* data_advice(const DataConfig& data) {
  return std::holds_alternative<ImageData>(data) ? "a folder of classes, or an IDX pair" : "a folder written by `quell data prepare`";
}

void check_sets(Problems& problems, const RunConfig& run) {
  const EvaluateConfig& c = run.evaluate;
  const std::string kind = kind_of(run.data);
  static const std::regex word("[A-Za-z][A-Za-z0-9_-]*");
  std::set<std::string> seen;
  for (size_t i = 0; i < c.sets.size(); ++i) {
    const std::string key = cat("evaluate.sets.", i);
    if (!std::regex_match(c.sets[i].name, word)) {
      problems.add(key + ".name", cat("\"", c.sets[i].name, "\" cannot prefix a metric"), "allowed: letters, digits, _ and -");
    }
    if (!seen.insert(c.sets[i].name).second) problems.add(key + ".name", cat(c.sets[i].name, " stands twice"), "choose another name");
    const bool drawn = train_path(run.data) == nullptr;
    if (drawn && c.sets[i].data != kind) {
      problems.add(key + ".data", cat(kind, " data are drawn, not read"), cat("write ", kind, ": samples of this set's own"));
    }
    if (!drawn && c.sets[i].data.empty()) problems.add(key + ".data", "no data is named", data_advice(run.data));
    if (c.sets[i].name == "train") problems.add(key + ".name", "the run's folder calls its training data train", "choose another name");
  }
}

// kernels: fused is an error where some layer's attention has no fused kernel.
void check_kernels(Problems& problems, const RunConfig& c) {
  if (c.loss.kind == LossKind::sigmoid) problems.add("kernels", "no fused kernel has loss.kind sigmoid", "set kernels to auto or reference");
  const TransformerConfig& model = transformer(c.model);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    std::string reason;
    if (attention_path(c, layer_variant(model, layer).attention, &reason) == ops::AttentionPath::flash) continue;
    problems.add("kernels", cat("no fused kernel has what layer ", layer, "'s attention wants: ", reason), "set kernels to auto or reference");
    return;
  }
}

// A decoder reads tokens, a vision transformer images; what only one of them can do is refused for the other.
void check_kinds(Problems& problems, const RunConfig& c) {
  const bool vit = std::holds_alternative<VitConfig>(c.model), images = std::holds_alternative<ImageData>(c.data);
  if (vit != images) {
    problems.add("data.kind", vit ? "a vision transformer reads images" : "a decoder reads tokens", vit ? "set data.kind to images" : "set data.kind to tokens");
  }
  if (vit && c.tokens) problems.add("tokens", "images are not counted in tokens", "set steps or epochs");
  if (vit && c.evaluate.sample > 0) problems.add("evaluate.sample", "a vision transformer writes no text", "set it to 0");
  if (!vit && c.loss.kind == LossKind::sigmoid) problems.add("loss.kind", "sigmoid is for classes of images", "set it to softmax");
}

// Drawn data fit the model by their numbers alone, and have no end.
void check_drawn(Problems& problems, const RunConfig& c) {
  const auto* model = std::get_if<DecoderConfig>(&c.model);
  if (train_path(c.data) != nullptr || model == nullptr) return;
  const auto* copy = std::get_if<CopyData>(&c.data);
  if (copy != nullptr && model->context != copy->context()) {
    problems.add("model.context", cat(model->context, " is not twice data.length ", copy->length),
                 cat("set it to ", copy->context(), ": the string, the separator, and the string but for its last symbol"));
  }
  const int64_t vocabulary = copy != nullptr ? copy->vocabulary() : std::get<RandomData>(c.data).vocabulary;
  if (model->vocabulary && *model->vocabulary < vocabulary) {
    problems.add("model.vocabulary", cat(*model->vocabulary, " is less than the data's ", vocabulary), "leave it out, or set it to that or more");
  }
  const std::string endless = kind_of(c.data) + " data have no end";
  if (c.epochs) problems.add("epochs", endless, "set steps, tokens or time");
  if (!c.evaluate.batches && !c.evaluate.sets.empty()) problems.add("evaluate.batches", endless, "set a number of batches");
}

// A misspelt name would keep nothing, and say nothing.
void check_best(Problems& problems, const RunConfig& c) {
  if (!c.checkpoint.keep_best) return;
  std::vector<std::string> kinds{"loss", "accuracy"}, names;
  if (std::holds_alternative<VitConfig>(c.model)) kinds.emplace_back("accuracy_top5");
  if (std::holds_alternative<CopyData>(c.data)) kinds.emplace_back("exact_match");
  for (const EvaluationSet& set : c.evaluate.sets) {
    for (const std::string& kind : kinds) {
      names.push_back(cat(set.name, ".", kind));
      if (c.ema) names.push_back(cat(set.name, ".ema.", kind));
    }
  }
  if (std::find(names.begin(), names.end(), *c.checkpoint.keep_best) != names.end()) return;
  problems.add("checkpoint.keep_best", cat("\"", *c.checkpoint.keep_best, "\" is no number of an evaluation of this run"), "allowed: " + join(names, ", "));
}

}  // namespace

void check(Problems& problems, const LossConfig& c) {
  if (c.kind != LossKind::sigmoid) return;
  if (c.z > 0) problems.add("z", "a sigmoid has no denominator to bound", "set it to 0");
  if (c.max_z > 0) problems.add("max_z", "it bounds the largest logit of a softmax", "set it to 0");
}

ops::AttentionPath attention_path(const RunConfig& config, const AttentionConfig& attention, std::string* reason) {
  ops::AttentionSpec spec;
  spec.softcap = attention.softcap;
  spec.dropout = attention.dropout;
  if (config.kernels == Kernels::reference) spec.kernels = Kernels::reference;  // fused is checked, not thrown for
  const bool bf16 = config.precision == Precision::bf16, fp64 = config.precision == Precision::fp64;
  return ops::attention_path(spec, bf16 ? at::kBFloat16 : fp64 ? at::kDouble : at::kFloat, reason);
}

void apply_preset_groups(RunConfig& config) {
  const Optional<Preset> preset = transformer(config.model).attention.preset;
  if (!preset) return;
  if (const auto decay = preset_qk_norm_decay(*preset)) config.optimizer.groups.qk_norm_weight.decay = decay;
}

void check(Problems& problems, const RunConfig& c) {
  static const std::regex device("auto|cpu|cuda:[0-9]{1,3}");
  static const std::regex folder("[A-Za-z0-9][A-Za-z0-9._-]*");
  if (c.name.empty()) {
    problems.add("name", "the run has no name", "write name: ..., after which its folder is called");
  } else if (!std::regex_match(c.name, folder)) {
    problems.add("name", cat("\"", c.name, "\" cannot name a folder"), "allowed: letters, digits, '.', '_' and '-'");
  }
  if (!std::regex_match(c.device, device)) problems.add("device", cat("\"", c.device, "\" is no device"), "allowed: auto, cpu, cuda:N");
  if (const std::string* path = train_path(c.data); path != nullptr && path->empty()) {
    problems.add("data.train", "no training data is named", data_advice(c.data));
  }
  const int64_t batch = batch_of(c.data);
  if (batch % c.micro_batches != 0) {
    problems.add("micro_batches", cat(c.micro_batches, " does not divide data.batch ", batch), nearest_divisors(batch, c.micro_batches));
  }
  check_kinds(problems, c);
  check_drawn(problems, c);
  if (c.precision == Precision::fp64 && c.kernels == Kernels::fused) {
    problems.add("kernels", "precision fp64 runs the readable twins", "set kernels to auto or reference");
  } else if (c.kernels == Kernels::fused) {
    check_kernels(problems, c);
  }
  check_plan(problems, c);
  check_sets(problems, c);
  check_best(problems, c);
}

}  // namespace quell
