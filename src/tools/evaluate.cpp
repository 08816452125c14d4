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

constexpr const char *predictions_end = ".predictions.safetensors", *samples_end = ".samples.safetensors";

// A set that was named by its path is called by that path's last part.
std::string file_name(const std::string& set) { return set.substr(set.rfind('/') + 1); }

// Data that are drawn have no path and no end.
void check_drawn(const RunConfig& config, const std::string& run) {
  if (train_path(config.data) != nullptr) return;
  const std::string kind = kind_of(config.data);
  for (const EvaluationSet& set : config.evaluate.sets) {
    if (set.data != kind) throw UsageError(cat("--data: ", set.data, ": ", kind, " data are drawn, not read; leave it out, or write ", kind));
  }
  if (!config.evaluate.batches) throw UsageError(cat(run, ": ", kind, " data have no end; say how many with --batches N"));
}

std::string dump_start(const EvaluateOptions& options, const std::string& set) { return options.dump + "/" + file_name(set); }

// Two sets must not write the same files of a dump, and none over what is there.
void check_dump(const EvaluateOptions& options, const std::vector<EvaluationSet>& wanted) {
  std::set<std::string> names;
  for (const EvaluationSet& set : wanted) {
    if (file_name(set.name).empty() || !names.insert(file_name(set.name)).second) {
      throw UsageError(cat("--dump: \"", set.name, "\" gives no file name of its own; evaluate it in another call"));
    }
    for (const char* kind : {predictions_end, samples_end}) {
      const std::string path = dump_start(options, set.name) + kind;
      if (files::exists(path)) throw UsageError(cat("--dump: ", path, " exists already; choose another folder"));
    }
  }
}

// The run's configuration with the sets that are asked for.
RunConfig with_sets(RunConfig config, const EvaluateOptions& options) {
  EvaluateConfig& evaluate = config.evaluate;
  if (!options.data.empty()) evaluate.sets.clear();
  for (const std::string& path : options.data) evaluate.sets.push_back({path, path});
  if (evaluate.sets.empty()) throw UsageError(options.run + ": its configuration names no evaluation set; give one with --data");
  if (options.batches) evaluate.batches = *options.batches > 0 ? Optional<int64_t>(*options.batches) : std::nullopt;
  check_drawn(config, options.run);
  if (!options.dump.empty()) check_dump(options, evaluate.sets);
  return config;
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
    const auto known = static_cast<int64_t>(bytes_.size());  // a raw file may hold ids that the vocabulary has no text for
    for (int64_t i = 0; i < flat.numel(); ++i) total_ += id[i] >= 0 && id[i] < known ? bytes_[static_cast<size_t>(id[i])] : 0;
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
  const std::string start = dump_start(options, set.name);
  predictions.write(start + predictions_end);
  if (!options.samples.empty()) dump_samples(start + samples_end, config, objective, set, options.samples);
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
  const Watch watch{.batch = [&](const Batch& batch, const at::Tensor& logits_NV) {
    if (bytes) bytes->add(batch.targets_BT);
    if (!report.confusion.empty()) add_confusion(report.confusion, logits_NV, batch.targets_BT);
    if (!options.dump.empty()) predictions.add(batch, logits_NV);
  }};
  report.evaluation = evaluate_set(config, World(), objective, set, watch);
  if (!options.dump.empty()) dump(options, config, objective, set, predictions);
  report.broken = broken_text(set.data);
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
  config = with_sets(std::move(config), options);
  if (options.dump.empty() && !options.samples.empty()) throw UsageError("--samples: says what --dump writes; give --dump DIR too");
  if (options.threads) config.threads = options.threads;
  const Labels labels = labels_of_run(options.run);
  const std::vector<EvaluationData> sets = open_evaluations(config, labels, options.progress);
  for (const EvaluationData& set : sets) require_samples(set, options.samples);  // before anything is written
  if (!options.dump.empty()) files::make_folders(options.dump);
  prepare_process(config);

  ParameterList parameters;
  const Model model = make_model(parameters, config.model);
  Arena arena(parameters, {.precision = config.precision, .world = 1, .device = at::kCPU});
  load_weights(weights, parameters, arena);
  const Objective objective(model, config.loss);
  std::vector<SetReport> reports;
  for (size_t i = 0; i < sets.size(); ++i) {
    reports.push_back(evaluate_one(config, objective, sets[i], config.evaluate.sets[i].data, labels, options));
  }
  return reports;
}

}  // namespace quell
