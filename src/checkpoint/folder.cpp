#include "checkpoint/folder.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoint/commit.h"

namespace quell {
namespace {

// The step of a name that checkpoint_name() makes.
std::optional<int64_t> step_of(const std::string& name) {
  int64_t step = 0;
  if (!name.starts_with("step-")) return std::nullopt;
  const char* begin = name.data() + 5;
  const auto [end, problem] = std::from_chars(begin, name.data() + name.size(), step);
  if (problem != std::errc() || name != checkpoint_name(step)) return std::nullopt;
  return step;
}

struct Candidate {
  Entry entry;
  Manifest manifest;
};

// What retention may judge: whole by sizes, and of this run.
std::vector<Candidate> candidates(const std::string& folder, const std::string& run, int64_t last) {
  std::vector<Candidate> all;
  for (const Entry& entry : list_checkpoints(folder)) {
    try {
      Checkpoint checkpoint = open_checkpoint(entry.path, Verify::sizes);
      if (checkpoint.manifest.run == run && checkpoint.manifest.step == entry.step && entry.step <= last) all.push_back({entry, std::move(checkpoint.manifest)});
    } catch (const CheckpointError&) {  // not sound: neither kept for its worth nor removed for its lack of it
    }
  }
  return all;
}

std::set<int64_t> to_keep(const std::vector<Candidate>& all, const CheckpointConfig& config, const std::set<int64_t>& verified) {
  std::set<int64_t> keep;
  for (auto at = verified.rbegin(); at != verified.rend() && keep.size() < 2; ++at) keep.insert(*at);
  const size_t last = std::min(all.size(), static_cast<size_t>(std::max<int64_t>(2, config.keep_last)));
  for (size_t i = all.size() - last; i < all.size(); ++i) keep.insert(all[i].entry.step);
  const Candidate* best = nullptr;
  const auto value = [&](const Candidate& c) { return c.manifest.metrics.at(*config.keep_best); };
  for (const Candidate& each : all) {
    if (config.keep_every && each.entry.step % *config.keep_every == 0) keep.insert(each.entry.step);
    if (!config.keep_best || !each.manifest.metrics.contains(*config.keep_best)) continue;
    const bool better = best == nullptr || (larger_is_better(*config.keep_best).value() ? value(each) > value(*best) : value(each) < value(*best));
    if (better) best = &each;
  }
  if (best != nullptr) keep.insert(best->entry.step);
  return keep;
}

}  // namespace

std::vector<Entry> list_checkpoints(const std::string& folder) {
  std::vector<Entry> entries;
  if (!files::is_folder(folder)) return entries;
  for (const std::string& name : files::list(folder)) {
    const std::string path = folder + "/" + name;
    if (const auto step = step_of(name); step && files::is_folder(path)) entries.push_back({*step, path});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.step < b.step; });
  return entries;
}

std::optional<Checkpoint> newest_sound(const std::string& folder, const std::string& run, const Note& note) {
  const std::vector<Entry> entries = list_checkpoints(folder);
  for (size_t i = entries.size(); i-- > 0;) {
    const std::string& path = entries[i].path;
    try {
      if (const int64_t step = read_manifest(path).step; step != entries[i].step) {
        throw CheckpointError(cat(path, "/", manifest_name, ": is of step ", step));
      }
      Checkpoint checkpoint = open_checkpoint(path, Verify::full);
      if (run.empty() || checkpoint.manifest.run == run) return checkpoint;
      note(path + ": passed over: it belongs to another run");
    } catch (const CheckpointError& problem) {
      note(cat(path, ": passed over: ", problem.what()));
    }
  }
  return std::nullopt;
}

void remove_leftovers(const std::string& folder, const Note& note) {
  if (!files::is_folder(folder)) return;
  for (const std::string& name : files::list(folder)) {
    const size_t mark = std::min(name.find(".tmp-"), name.find(".old-"));
    if (!name.starts_with(".step-") || mark == std::string::npos || !step_of(name.substr(1, mark - 1))) continue;
    files::remove_all(folder + "/" + name);
    note(cat(folder, "/", name, ": removed: a save or a removal that was never finished"));
  }
}

std::vector<std::string> not_kept(const std::string& folder, const std::string& run, const CheckpointConfig& config, const std::set<int64_t>& verified) {
  std::vector<std::string> paths;
  if (verified.empty()) return paths;
  const std::vector<Candidate> all = candidates(folder, run, *verified.rbegin());
  const std::set<int64_t> keep = to_keep(all, config, verified);
  for (const Candidate& each : all) {
    if (!keep.contains(each.entry.step)) paths.push_back(each.entry.path);
  }
  return paths;
}

std::vector<std::string> retain(const std::string& folder, const std::string& run, const CheckpointConfig& config, const std::set<int64_t>& verified) {
  const std::vector<std::string> paths = not_kept(folder, run, config, verified);
  for (const std::string& path : paths) remove_checkpoint(path);
  return paths;
}

}  // namespace quell
