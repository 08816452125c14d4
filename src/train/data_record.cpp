#include "train/data_record.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace quell {
namespace {

// Times are whole numbers of nanoseconds, and all of it is compared as it is written.
Json record_of(const DataPart& part) {
  Json record{{"name", part.name}};
  if (part.is_class) record["files"] = part.files;
  record["bytes"] = part.bytes;
  record["modified_ns"] = part.modified;
  record["digest"] = part.digest;
  return record;
}

const Json& parts_of(const Json& record) {
  static const Json none = Json::array();
  return record.contains("parts") ? record.at("parts") : none;
}

// As many as there are classes of images, or shards: not sought one by one. What is not as a run writes it throws Json::exception.
using Parts = std::map<std::string, const Json*>;
Parts parts_by_name(const Json& record) {
  Parts parts;
  for (const Json& part : parts_of(record)) parts[part.at("name").get<std::string>()] = &part;
  return parts;
}

// "80 bytes", of a class "2 files of 80 bytes".
std::string size_of(const Json& part) {
  const std::string bytes = cat(part.at("bytes").get<int64_t>(), " bytes");
  if (!part.contains("files")) return bytes;
  const auto files = part.at("files").get<int64_t>();
  return cat(files, files == 1 ? " file of " : " files of ", bytes);
}

// How one part differs, "" where it does not.
std::string difference_of_part(const Json& before, const Json& now) {
  const bool is_class = now.contains("files");
  const auto old_bytes = before.at("bytes").get<int64_t>(), bytes = now.at("bytes").get<int64_t>();
  const auto old_digest = before.at("digest").get<std::string>(), digest = now.at("digest").get<std::string>();
  if (is_class && size_of(before) != size_of(now)) return cat("has ", size_of(now), ", had ", size_of(before));
  if (old_digest == digest) return "";
  if (old_bytes != bytes) return cat(bytes < old_bytes ? "cut" : "grown", " from ", old_bytes, " to ", bytes, " bytes");
  return cat(is_class ? "names or sizes of its files were changed" : "changed", " (digest ", digest, ", was ", old_digest, ")");
}

std::vector<std::string> changed_parts(const Json& before, const Json& now) {
  std::vector<std::string> lines;
  const Parts old_parts = parts_by_name(before), parts = parts_by_name(now);
  for (const auto& [name, old] : old_parts) {
    const auto part = parts.find(name);
    const std::string what = part == parts.end() ? cat("removed (it had ", size_of(*old), ")") : difference_of_part(*old, *part->second);
    if (!what.empty()) lines.push_back(cat(name, ": ", what));
  }
  for (const auto& [name, part] : parts) {
    if (!old_parts.contains(name)) lines.push_back(cat(name, ": added (", size_of(*part), ")"));
  }
  return lines;
}

std::string rewritten_parts(const Json& before, const Json& now) {
  std::string first;
  int64_t count = 0;
  const Parts old_parts = parts_by_name(before);
  for (const auto& [name, part] : parts_by_name(now)) {
    const auto old = old_parts.find(name);
    if (old == old_parts.end() || old->second->at("modified_ns") == part->at("modified_ns")) continue;
    if (count++ == 0) first = name;
  }
  return count < 2 ? first : cat(first, " and ", count - 1, " more");
}

// Of data that have other times than was kept, and are else the same.
std::string warning_of(const std::string& path, const std::string& rewritten, const DataConfig& config) {
  const auto* tokens = std::get_if<TokenData>(&config);
  if (tokens == nullptr) return cat(path, ": ", rewritten, " was written since; names and sizes are the same, and contents are not hashed");
  return cat(path, ": ", rewritten, " was written since; sizes are the same, and contents are ",
             tokens->verify == BlockCheck::read ? "checked when they are read" : "not checked (data.verify: none)");
}

// Whether to open the set was to read and compare all of it: a pair of images and labels, or a raw file that has another time than before.
bool is_read_whole(const Json& record) {
  const bool is_pair = record.contains("images") && !parts_of(record).empty() && !parts_of(record)[0].contains("files");
  return is_pair || record.value("path", "").ends_with(".bin");
}

}  // namespace

Json record_of(const DataFacts& set) {
  Json record{{"path", set.path}, {set.items, set.count}, {"digest", set.digest}};
  if (!set.vocabulary.empty()) record["vocabulary"] = set.vocabulary;
  for (const DataPart& part : set.parts) record["parts"].push_back(record_of(part));
  return record;
}

Json data_record(const Run& run) {
  Json record;
  record["train"] = record_of(facts_of(run.source));
  for (const EvaluationData& set : run.evaluations) record[set.name] = record_of(facts_of(set.data));
  return record;
}

DataDifference difference_of(const Json& before, const Json& now) {
  DataDifference difference;
  const auto differs = [&](const char* member, const char* what) {
    const std::string is = now.value(member, ""), was = before.value(member, "");
    if (is != was) difference.what += cat(difference.what.empty() ? "" : ", ", "its ", what, " is ", is, ", was ", was);
    return is != was;
  };
  if (differs("digest", "digest") && before.contains("parts")) {
    difference.parts = changed_parts(before, now);
    if (difference.parts.empty()) {
      difference.parts.push_back("in its files nothing: in their order, the type of tokens, the borders of documents or the shape of images");
    }
  }
  if (before.contains("vocabulary") && differs("vocabulary", "vocabulary's digest")) difference.parts.push_back("tokens.json: another vocabulary");
  if (difference.what.empty()) difference.rewritten = rewritten_parts(before, now);
  return difference;
}

std::string text_of(const DataDifference& difference, const Json& before, const Json& now) {
  constexpr size_t shown = 8;
  std::string text = cat(now.value("path", ""), ": is not what this run was begun with: ", difference.what, " (", before.value("path", ""),
                         "); put back what was there, or begin a new run");
  for (size_t i = 0; i < std::min(shown, difference.parts.size()); ++i) text += "\n  " + difference.parts[i];
  if (difference.parts.size() > shown) text += cat("\n  and ", difference.parts.size() - shown, " more");
  return text;
}

void require_same_data(const Run& run, const Json& before, const Json& now) try {
  std::vector<std::string> problems;
  for (const auto& [name, set] : now.items()) {
    const bool is_train = name == "train";
    if (!is_train && !before.contains(name)) continue;  // a set that the run file has got since
    const Json old = before.value(name, Json::object());
    const DataDifference difference = difference_of(old, set);
    if (difference.what.empty()) {
      if (!difference.rewritten.empty() && !is_read_whole(set)) log::warn(warning_of(set.value("path", ""), difference.rewritten, run.config.data));
    } else if (is_train || old.value("path", "") == set.value("path", "")) {
      problems.push_back(text_of(difference, old, set));
    } else {
      log::warn(cat(name, ": its numbers from here on are of ", set.value("path", ""), ", before of ", old.value("path", "")));
    }
  }
  if (!problems.empty()) throw DataError(join(problems, "\n"));
} catch (const Json::exception&) {
  throw CheckpointError("data: what the checkpoint says of its data is not what a run writes; go on from another checkpoint");
}

}  // namespace quell
