#include "tools/evaluate.h"

#include <cmath>
#include <numbers>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoint/weights.h"
#include "tools/dump.h"
#include "tools/run_files.h"
#include "train/start.h"

namespace quell {
namespace {

// A set that was named by its path is called by that path's last part.
std::string file_name(const std::string& set) { return set.substr(set.rfind('/') + 1); }

// Evaluated sets and their paths.
struct Sets {
  std::vector<EvaluationData> data;
  std::vector<std::string> paths;
};

// Data that are drawn have no path and no end.
void check_drawn(const RunConfig& config, const EvaluateOptions& options, const std::vector<EvaluationSet>& wanted) {
  if (train_path(config.data) != nullptr) return;
  const std::string kind = kind_of(config.data);
  for (const EvaluationSet& set : wanted) {
    if (set.data != kind) throw UsageError(cat("--data: ", set.data, ": ", kind, " data are drawn, not read; leave it out, or write ", kind));
  }
  if (options.batches.value_or(config.evaluate.batches.value_or(0)) == 0) {
    throw UsageError(cat(options.run, ": ", kind, " data have no end; say how many with --batches N"));
  }
}

// What the files of a dump are called after; two sets must not write the same.
void check_names(const std::vector<EvaluationSet>& wanted) {
  std::set<std::string> names;
  for (const EvaluationSet& set : wanted) {
    if (file_name(set.name).empty() || !names.insert(file_name(set.name)).second) {
      throw UsageError(cat("--dump: \"", set.name, "\" gives no file name of its own; evaluate it in another call"));
    }
  }
}

Sets open_sets(const RunConfig& config, const EvaluateOptions& options, const Labels& labels) {
  std::vector<EvaluationSet> wanted = config.evaluate.sets;
  if (!options.data.empty()) {
    wanted.clear();
    for (const std::string& path : options.data) wanted.push_back({path, path});
  }
  check_drawn(config, options, wanted);
  if (!options.dump.empty()) check_names(wanted);
  if (wanted.empty()) throw UsageError(options.run + ": its configuration names no evaluation set; give one with --data");
  const int64_t batches = options.batches.value_or(config.evaluate.batches.value_or(0));
  Sets sets;
  for (const EvaluationSet& set : wanted) {
    sets.data.push_back({set.name, open_set(config, set, batches * batch_of(config.data), labels, options.progress)});
    sets.paths.push_back(set.data);
  }
  return sets;
}

// Bytes of the text of all scored targets.
class ByteCount {
 public:
  explicit ByteCount(const Vocabulary& vocabulary) {
    for (int64_t id = 0; id < vocabulary.size(); ++id) bytes_.push_back(static_cast<int64_t>(vocabulary.decode({id}).size()));
  }
  void add(const at::Tensor& targets) {
    const at::Tensor flat = targets.contiguous();
    const int64_t* const id = flat.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < flat.numel(); ++i) total_ += id[i] < 0 ? 0 : (static_cast<size_t>(id[i]) < bytes_.size() ? bytes_[static_cast<size_t>(id[i])] : 0);
  }
  int64_t total() const { return total_; }

 private:
  std::vector<int64_t> bytes_;
  int64_t total_ = 0;
};

void add_confusion(std::vector<std::vector<int64_t>>& confusion, const at::Tensor& logits_NV, const at::Tensor& targets_N) {
  const at::Tensor predicted = logits_NV.argmax(1).contiguous(), targets = targets_N.contiguous();
  for (int64_t i = 0; i < targets.numel(); ++i) {
    const int64_t target = targets.const_data_ptr<int64_t>()[i];
    if (target >= 0) ++confusion.at(static_cast<size_t>(target)).at(static_cast<size_t>(predicted.const_data_ptr<int64_t>()[i]));
  }
}

// DIR/<set>.predictions.safetensors and, of chosen samples, DIR/<set>.samples.safetensors.
void dump(const EvaluateOptions& options, const RunConfig& config, const Objective& objective, const EvaluationData& set,
          const Predictions& predictions) {
  const std::string start = options.dump + "/" + file_name(set.name);
  predictions.write(start + ".predictions.safetensors");
  if (!options.samples.empty()) dump_samples(start + ".samples.safetensors", config, objective, set, options.samples);
}

SetReport evaluate_one(const RunConfig& config, const Objective& objective, const EvaluationData& set, const std::string& path,
                       const Labels& labels, const EvaluateOptions& options) {
  SetReport report;
  report.path = path;
  report.samples = samples_of(set.data);
  std::optional<ByteCount> bytes;
  if (labels.vocabulary) bytes.emplace(*labels.vocabulary);
  if (const auto* vit = std::get_if<VitConfig>(&config.model)) {
    const auto classes = static_cast<size_t>(*vit->classes);
    report.classes = labels.classes;
    for (size_t i = report.classes.size(); i < classes; ++i) report.classes.push_back(std::to_string(i));
    report.confusion.assign(classes, std::vector<int64_t>(classes));
  }
  Predictions predictions;
  report.evaluation = evaluate_set(config, World(), objective, set, [&](const Batch& batch, const at::Tensor& logits_NV) {
    if (bytes) bytes->add(batch.targets_BT);
    if (!report.confusion.empty()) add_confusion(report.confusion, logits_NV, batch.targets_BT);
    if (!options.dump.empty()) predictions.add(batch, logits_NV);
  });
  if (!options.dump.empty()) dump(options, config, objective, set, predictions);
  const LossTotals& totals = report.evaluation.totals;
  if (bytes && bytes->total() > 0) {
    report.bits_per_byte = totals.cross_entropy() * totals.targets() / (std::numbers::ln2 * static_cast<double>(bytes->total()));
  }
  return report;
}

}  // namespace

std::vector<SetReport> evaluate_run(const EvaluateOptions& options) {
  RunConfig config = config_of_run(options.run);
  const std::string weights = options.ema ? require_file(options.run, "ema.safetensors", "moving average: `ema` was none")
                                          : require_file(options.run, "weights.safetensors", "weights: the run has not ended");
  if (!options.dump.empty()) files::make_folders(options.dump);
  if (options.dump.empty() && !options.samples.empty()) throw UsageError("--samples: says what --dump writes; give --dump DIR too");
  if (options.threads) config.threads = options.threads;
  const Labels labels = labels_of_run(options.run);
  const Sets sets = open_sets(config, options, labels);
  prepare_process(config);

  ParameterList parameters;
  const Model model = make_model(parameters, config.model);
  Arena arena(parameters, {.precision = config.precision, .world = 1, .device = at::kCPU});
  load_weights(weights, parameters, arena);
  const Objective objective(model, config.loss);
  std::vector<SetReport> reports;
  for (size_t i = 0; i < sets.data.size(); ++i) reports.push_back(evaluate_one(config, objective, sets.data[i], sets.paths[i], labels, options));
  return reports;
}

}  // namespace quell
