#include "train/folder.h"

#include "base/error.h"
#include "base/log.h"
#include "checkpoint/weights.h"
#include "config/print.h"

namespace quell {
namespace {

Json data_record(const Run& run) {
  Json record;
  const auto add = [&](const std::string& name, const DataFacts& facts) {
    record[name] = {{"path", facts.path}, {facts.items, facts.count}, {"digest", facts.digest}};
  };
  add("train", facts_of(run.source));
  for (const EvaluationData& set : run.evaluations) add(set.name, facts_of(set.data));
  return record;
}

}  // namespace

RunFolder::RunFolder(const std::string& path, const Run& run) : path_(path) {
  if (!files::make_new_folder(path)) {
    throw UsageError(path + ": exists already, and a run never overwrites another; choose another name, or --run DIR");
  }
  files::write_atomically(path + "/config.yaml", config::print(run.config));
  files::write_atomically(path + "/data.json", data_record(run).dump(1) + "\n");
  if (const Vocabulary* vocabulary = vocabulary_of(run.source)) {
    files::write_atomically(path + "/vocabulary.json", vocabulary->to_json().dump(1) + "\n");
  }
  if (const auto* images = std::get_if<ImageSource>(&run.source)) {
    files::write_atomically(path + "/classes.json", Json(images->set().class_names()).dump(1) + "\n");
  }
  metrics_ = std::make_unique<files::Appender>(path + "/metrics.jsonl");
  log::also_to_file(path + "/log.txt");
}

void RunFolder::save_weights(Run& run, int64_t step) const {
  const Metadata metadata{{"format", "quell weights 1"}, {"name", run.config.name}, {"step", std::to_string(step)}};
  quell::save_weights(path_ + "/weights.safetensors", run.parameters, metadata);
  if (!run.ema) return;
  const Ema::Instead average(*run.ema);
  quell::save_weights(path_ + "/ema.safetensors", run.parameters, metadata);
}

}  // namespace quell
