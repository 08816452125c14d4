#include "train/folder.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/random.h"
#include "base/text.h"
#include "checkpoint/weights.h"
#include "config/print.h"

namespace quell {
namespace {

// Who works in a folder: "process 4711 on node3, job 1234".
std::string owner_text() {
  char host[256] = "an unnamed host";
  ::gethostname(host, sizeof host - 1);
  std::string text = cat("process ", ::getpid(), " on ", host);
  if (const char* job = std::getenv("SLURM_JOB_ID"); job != nullptr) text += cat(", job ", job);
  return text;
}

// Without the line of a key that says how a run is started, not what it is.
std::string without_resume(std::string text) {
  const size_t begin = text.find("\nresume: ");
  return begin == std::string::npos ? text : text.erase(begin, text.find('\n', begin + 1) - begin);
}

// Keeps what the run was made with so far.
void write_config(const std::string& folder, const Run& run) {
  const std::string path = folder + "/config.yaml", text = config::print(run.config);
  if (files::exists(path)) {
    const std::string before = files::read(path, 1 << 20);
    if (without_resume(before) != without_resume(text)) files::write_atomically(cat(folder, "/config.until_", run.step, ".yaml"), before);
  }
  files::write_atomically(path, text);
}

}  // namespace

std::string folder_is_taken(const std::string& path) {
  return path + ": exists already, and a run never overwrites another; go on with it by --resume, or choose another name or --run DIR";
}

std::string run_id_of(const std::string& folder) {
  const std::string path = folder + "/run.json";
  if (!files::exists(path)) return "";
  Json json;
  try {
    json = parse_json(files::read(path, 1 << 16), path);
  } catch (const DataError&) {  // said below
  }
  if (!json.is_object() || !json.contains("run") || !json["run"].is_string()) {
    throw CheckpointError(path + ": holds no id of a run; remove it, and the newest checkpoint says whose run it is");
  }
  return json["run"].get<std::string>();
}

FolderLock::FolderLock(const std::string& path, bool may_exist) : path_(path) {
  if (!files::make_new_folder(path) && !may_exist) throw UsageError(folder_is_taken(path));
  const std::string file = path + "/lock";
  std::string owner;
  lock_ = files::Lock::hold(file, owner_text(), owner);
  if (!lock_) {
    owner = files::read(file, 4096);
    throw MachineError(cat(path, ": ", owner.empty() ? "another process" : owner, " is working in it"));
  }
  log::also_to_file(path + "/log.txt");
  if (!owner.empty()) log::info(cat("lock        taken over from ", owner, ", which was killed: it works here no more"));
}

RunFolder::RunFolder(FolderLock lock, const Run& run, const std::string& id)
    : lock_(std::move(lock)), id_(id.empty() ? unique_id() : id), data_(data_record(run)) {
  files::write_atomically(path() + "/run.json", Json{{"run", id_}}.dump() + "\n");
  write_config(path(), run);
  files::write_atomically(path() + "/data.json", data_.dump(1) + "\n");
  if (const Vocabulary* vocabulary = vocabulary_of(run.source)) {
    files::write_atomically(path() + "/vocabulary.json", vocabulary->to_json().dump(1) + "\n");
  }
  if (const auto* images = std::get_if<ImageSource>(&run.source)) {
    files::write_atomically(path() + "/classes.json", Json(images->set().class_names()).dump(1) + "\n");
  }
  metrics_ = std::make_unique<files::Appender>(metrics_path());
}

std::optional<int64_t> RunFolder::set_metrics_aside(uint64_t bytes) {
  const std::string all = files::read(metrics_path());
  if (all.size() < bytes) {
    if (!all.ends_with('\n')) files::truncate(metrics_path(), all.rfind('\n') + 1);  // 0 where there is no line
    return std::nullopt;
  }
  std::string_view rest = std::string_view(all).substr(bytes);
  if (rest.empty()) return 0;
  const int64_t rows = std::count(rest.begin(), rest.end(), '\n');
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  files::Appender aside(path() + "/metrics.set_aside.jsonl");
  aside.write_line(rest);
  aside.sync();
  files::sync_folder(path());  // before anything is cut off
  files::truncate(metrics_path(), bytes);
  return rows;
}

void RunFolder::save_weights(Run& run, int64_t step) const {
  if (!is_kept()) return;
  const Metadata metadata{{"format", "quell weights 1"}, {"name", run.config.name}, {"step", std::to_string(step)}};
  quell::save_weights(path() + "/weights.safetensors", run.parameters, metadata);
  if (!run.ema) return;
  const Ema::Instead average(*run.ema);
  quell::save_weights(path() + "/ema.safetensors", run.parameters, metadata);
}

}  // namespace quell
