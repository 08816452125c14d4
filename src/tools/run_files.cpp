#include "tools/run_files.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "config/load.h"

namespace quell {

std::string require_file(const std::string& run, const char* name, const char* what) {
  const std::string path = run + "/" + name;
  if (!files::exists(path)) throw CheckpointError(cat(path, ": not there; ", run, " holds no ", what));
  return path;
}

RunConfig config_of_run(const std::string& run) {
  if (!files::is_folder(run)) throw UsageError(run + ": no such folder; give the folder of a run, like runs/text_small");
  const std::string path = require_file(run, "config.yaml", "run");
  RunConfig config = config::load<RunConfig>(config::Source::from_file(path));
  const auto* vit = std::get_if<VitConfig>(&config.model);
  const bool resolved = vit != nullptr ? vit->classes.has_value() : std::get<DecoderConfig>(config.model).vocabulary.has_value();
  if (!resolved) {
    throw CheckpointError(cat(path, ": model.", vit != nullptr ? "classes" : "vocabulary", " is not a number: this is not the file that the run wrote"));
  }
  return config;
}

Labels labels_of_run(const std::string& run) {
  Labels labels{.from = run, .vocabulary = {}, .classes = {}};
  const std::string vocabulary = run + "/vocabulary.json", classes = run + "/classes.json";
  if (files::exists(vocabulary)) labels.vocabulary = Vocabulary::from_json(parse_json(files::read(vocabulary, 64 << 20), vocabulary), vocabulary);
  if (files::exists(classes)) {
    const Json names = parse_json(files::read(classes, 64 << 20), classes);
    if (!names.is_array()) throw CheckpointError(classes + ": not a list of names");
    for (const Json& name : names) labels.classes.push_back(name.is_string() ? name.get<std::string>() : name.dump());
  }
  return labels;
}

}  // namespace quell
