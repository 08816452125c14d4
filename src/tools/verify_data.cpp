#include "tools/verify_data.h"

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/sidecar.h"
#include "data/verify.h"
#include "tools/run_files.h"
#include "train/data_record.h"

namespace quell {
namespace {

struct Wanted {
  std::string path;
  TokenType type = TokenType::automatic;  // of a raw file, where a run says it
  std::string run, name;                  // of whom the set is, where a run's folder was given
  Json record = Json::object();
};

// What a run keeps of data that are drawn has no digest.
std::vector<Wanted> sets_of_run(const std::string& run) {
  const RunConfig config = config_of_run(run);
  const auto* tokens = std::get_if<TokenData>(&config.data);
  const std::string path = require_file(run, "data.json", "record of its data");
  const Json records = parse_json(files::read(path, 1 << 28), path);
  std::vector<Wanted> sets;
  for (const auto& [name, record] : records.items()) {
    const auto text = [&](const char* member) {
      const bool is_there = record.is_object() && record.contains(member) && record[member].is_string();
      if (!is_there) throw CheckpointError(cat(path, ": ", name, ".", member, " is not what a run writes"));
      return record[member].get<std::string>();
    };
    if (!text("digest").empty()) sets.push_back({text("path"), tokens == nullptr ? TokenType::automatic : tokens->type, run, name, record});
  }
  if (sets.empty()) throw DataError(path + ": the data of this run are drawn, not read: there is nothing to verify");
  return sets;
}

std::vector<Wanted> sets_at(const std::string& path) {
  if (files::exists(path + "/run.json")) return sets_of_run(path);
  std::vector<Wanted> splits;
  for (const char* split : {"/train", "/valid"}) {
    if (files::exists(path + split + "/" + SideCar::file_name)) splits.push_back({.path = path + split});
  }
  return splits.empty() ? std::vector<Wanted>{{.path = path}} : splits;
}

DataCheck check(const Wanted& set, const Progress& progress) {
  if (set.run.empty()) return check_data(set.path, set.type, progress);
  try {
    return check_data(set.path, set.type, progress);
  } catch (const DataError& problem) {  // a run's set that is not where it was is one that is not sound
    const std::string where = cat(" (the path that ", set.run, " recorded, from where it was started)");
    return {.path = set.path, .looked_at = "", .problems = {problem.what() + where}, .more_problems = 0, .facts = {}};
  }
}

// What the run would refuse to go on with.
void compare(DataCheck& found, const Wanted& set) {
  if (set.run.empty() || !found.facts) return;
  const Json now = record_of(*found.facts);
  try {
    const DataDifference difference = difference_of(set.record, now);
    if (!difference.what.empty()) found.problems.push_back(text_of(difference, set.record, now));
  } catch (const Json::exception&) {
    throw CheckpointError(cat(set.run, "/data.json: ", set.name, ".parts is not what a run writes"));
  }
}

void add(Answer& answer, const Wanted& set, const DataCheck& found) {
  const bool sound = found.problems.empty();
  Json row{{"path", found.path}, {"sound", sound}, {"looked_at", found.looked_at}};
  std::string of;
  if (!set.run.empty()) {
    row["run"] = set.run;
    row["set"] = set.name;
    of = cat(set.run, " ", set.name, ": ");
  }
  if (sound) {
    answer.text += cat(of, found.path, ": sound, ", found.looked_at, set.run.empty() ? "" : ", what the run was begun with", "\n");
  } else {
    row["problems"] = found.problems;
    row["more_problems"] = found.more_problems;
    answer.text += cat(of, found.path, ": not sound\n  ", join(found.problems, "\n  "), "\n");
    if (found.more_problems > 0) answer.text += cat("  and ", found.more_problems, " more\n");
  }
  answer.json.push_back(row);
  answer.yes = answer.yes && sound;
}

}  // namespace

Answer verify_data(const std::vector<std::string>& paths, const Progress& progress) {
  std::vector<Wanted> sets;
  for (const std::string& path : paths) {
    for (Wanted& set : sets_at(path)) {
      if (set.run.empty()) require_set(set.path, set.type);
      sets.push_back(std::move(set));
    }
  }
  Answer answer{"", Json::array()};
  for (const Wanted& set : sets) {
    DataCheck found = check(set, progress);
    compare(found, set);
    add(answer, set, found);
  }
  return answer;
}

}  // namespace quell
