#include "tools/checkpoints.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "train/folder.h"

namespace quell {
namespace {

// The folder of checkpoints that DIR means.
std::string folder_of(const std::string& dir) {
  if (!files::is_folder(dir)) throw UsageError(dir + ": no such folder; give a run's folder, like runs/text_small");
  const std::string inner = dir + "/checkpoints";
  const std::string folder = files::is_folder(inner) ? inner : dir;
  if (list_checkpoints(folder).empty()) throw UsageError(dir + ": holds no checkpoints");
  return folder;
}

bool is_checkpoint(const std::string& dir) { return files::exists(cat(dir, "/", manifest_name)); }

std::string left(const std::string& text, size_t width) { return text + std::string(text.size() < width ? width - text.size() : 1, ' '); }
std::string right(const std::string& text, size_t width) { return std::string(text.size() < width ? width - text.size() : 0, ' ') + text; }

std::string metrics_text(const Manifest& manifest) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : manifest.metrics) {
    if (name.ends_with(".loss") || name.ends_with(".accuracy")) parts.push_back(cat(name, " ", significant(value, 5)));
  }
  return join(parts, "  ");
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

std::string problem_of(const std::string& path, Verify depth) {
  try {
    open_checkpoint(path, depth);
    return "";
  } catch (const Error& problem) {
    return problem.what();
  }
}

}  // namespace

Checkpoint checkpoint_at(const std::string& dir) {
  if (is_checkpoint(dir)) return open_checkpoint(dir, Verify::sizes);
  auto newest = newest_sound(folder_of(dir), run_id_of(dir), [](const std::string& note) { log::warn(note); });
  if (!newest) throw CheckpointError(dir + ": holds no sound checkpoint");
  return std::move(*newest);
}

Answer list_checkpoints_of(const std::string& dir) {
  Answer answer{cat(right("step", 10), right("size", 12), "  last evaluation\n"), Json::array()};
  for (const Entry& entry : list_checkpoints(folder_of(dir))) {
    Json row{{"path", entry.path}, {"step", entry.step}};
    std::string told = "not sound: see quell checkpoint verify";
    double bytes = 0;
    if (const std::string problem = problem_of(entry.path, Verify::sizes); problem.empty()) {
      const Manifest manifest = read_manifest(entry.path);
      bytes = static_cast<double>(manifest.bytes());
      told = metrics_text(manifest);
      row["bytes"] = manifest.bytes();
      row["metrics"] = manifest.metrics;
    } else {
      row["problem"] = problem;
    }
    answer.text += cat(right(std::to_string(entry.step), 10), right(bytes > 0 ? human_bytes(bytes) : "", 12), "  ", told, "\n");
    answer.json.push_back(row);
  }
  return answer;
}

Answer verify_checkpoints(const std::string& dir) {
  std::vector<std::string> paths;
  if (is_checkpoint(dir)) {
    paths.push_back(dir);
  } else {
    for (const Entry& entry : list_checkpoints(folder_of(dir))) paths.push_back(entry.path);
  }
  Answer answer{"", Json::array()};
  for (const std::string& path : paths) {
    const std::string problem = problem_of(path, Verify::full);
    Json row{{"path", path}, {"sound", problem.empty()}};
    if (problem.empty()) {
      const Checkpoint checkpoint = open_checkpoint(path, Verify::sizes);
      row["content"] = checkpoint.manifest.content_digest();
      answer.text += cat(path, ": sound, ", human_bytes(static_cast<double>(checkpoint.manifest.bytes())), " read, content ", checkpoint.manifest.content_digest(), "\n");
      for (const std::string& name : foreign_files(checkpoint)) answer.text += cat("  ", name, " is in the folder, but no part of the checkpoint\n");
    } else {
      row["problem"] = problem;
      answer.text += cat(path, ": not sound\n  ", problem, "\n");
      answer.yes = false;
    }
    answer.json.push_back(row);
  }
  return answer;
}

Answer inspect_checkpoint(const std::string& dir) {
  const Checkpoint checkpoint = checkpoint_at(dir);
  const Manifest& m = checkpoint.manifest;
  Answer answer{cat(checkpoint.path, "\n  step       ", m.step, "\n  run        ", m.run, "\n  written by quell ", m.quell, ", libtorch ", m.libtorch,
                    "\n  ranks      ", m.world, "\n  evaluation ", metrics_text(m), "\n  content    ", m.content_digest(), "\n"),
                Json{{"path", checkpoint.path}, {"step", m.step}, {"run", m.run}, {"quell", m.quell}, {"libtorch", m.libtorch}, {"world", m.world},
                     {"metrics", m.metrics}, {"content", m.content_digest()}, {"config", m.config}, {"data", m.data}, {"integers", m.integers}, {"numbers", m.numbers}}};
  Json files = Json::array();
  for (const ManifestFile& file : m.files) {
    answer.text += cat("  ", file.name, ", ", human_bytes(static_cast<double>(file.bytes)), "\n");
    Json tensors = Json::array();
    for (const ManifestTensor& tensor : file.tensors) {
      answer.text += cat("    ", left(tensor.name, 44), left(tensor.type, 5), shape_text(tensor.shape), "\n");
      tensors.push_back({{"name", tensor.name}, {"type", tensor.type}, {"shape", tensor.shape}, {"digest", tensor.digest}});
    }
    files.push_back({{"name", file.name}, {"bytes", file.bytes}, {"tensors", tensors}});
  }
  answer.json["files"] = files;
  return answer;
}

Answer prune_checkpoints(const std::string& dir, const CheckpointConfig& keep, bool dry) {
  const std::string id = files::is_folder(dir) ? run_id_of(dir) : "";
  if (id.empty()) throw UsageError(dir + ": is no run's folder; give one, like runs/text_small");
  const FolderLock lock(dir, true);  // nobody may be training in it
  const std::string folder = folder_of(dir);
  std::set<int64_t> verified;
  bool has_metric = !keep.keep_best;
  for (const Entry& entry : list_checkpoints(folder)) {
    if (problem_of(entry.path, Verify::full).empty() && read_manifest(entry.path).run == id) {
      verified.insert(entry.step);
      has_metric = has_metric || read_manifest(entry.path).metrics.contains(*keep.keep_best);
    }
  }
  if (!has_metric) throw UsageError(cat("--keep-best: no sound checkpoint of ", dir, " has the number ", *keep.keep_best, "; quell checkpoint inspect shows them"));
  Answer answer{"", Json::array()};
  for (const std::string& path : dry ? not_kept(folder, id, keep, verified) : retain(folder, id, keep, verified)) {
    answer.text += cat(path, dry ? ": would go\n" : ": removed\n");
    answer.json.push_back(path);
  }
  if (answer.text.empty()) answer.text = "nothing to remove\n";
  return answer;
}

}  // namespace quell
