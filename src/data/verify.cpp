#include "data/verify.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "data/idx.h"
#include "data/raw.h"
#include "data/sidecar.h"

namespace quell {
namespace {

// What is wrong with the data or the disk goes into the list; that somebody asked for a stop does not.
template <class Work>
void collect(DataCheck& check, const Work& work) {
  try {
    work();
  } catch (const DataError& problem) {
    check.problems.push_back(problem.what());
  } catch (const MachineError& problem) {
    check.problems.push_back(problem.what());
  }
}

std::string counted(int64_t count, const char* what) { return cat(count, " ", what, count == 1 ? "" : "s"); }

void check_files(DataCheck& check, const std::vector<HashedFile>& files, const Progress& progress) {
  int64_t total = 0, done = 0, blocks = 0;
  for (const HashedFile& file : files) total += file.bytes;
  for (const HashedFile& file : files) {
    done += file.bytes;
    if (std::string problem = size_problem(file); !problem.empty()) {
      check.problems.push_back(std::move(problem));
      continue;
    }
    for (int64_t block = 0; block < static_cast<int64_t>(file.xxh3.size()); ++block, ++blocks) {
      collect(check, [&] {
        if (std::string problem = block_problem(file, block); !problem.empty()) check.problems.push_back(std::move(problem));
      });
      const int64_t left = std::max<int64_t>(0, file.bytes - (block + 1) * file.block_bytes);
      progress("verifying " + check.path, static_cast<uint64_t>(done - left), static_cast<uint64_t>(total));
    }
  }
  check.looked_at = cat(counted(blocks, "block"), " of ", counted(static_cast<int64_t>(files.size()), "file"));
}

void check_token_folder(DataCheck& check, const Progress& progress) {
  collect(check, [&] {
    const SideCar side_car = read_side_car(check.path);
    std::vector<HashedFile> files;
    for (const auto& shard : side_car.shards) {
      ShardFiles of_shard = files_of(check.path, side_car, shard);
      files.push_back(std::move(of_shard.ids));
      if (of_shard.scored) files.push_back(std::move(*of_shard.scored));
    }
    check_files(check, files, progress);
    const bool can_open = std::all_of(files.begin(), files.end(), [](const HashedFile& file) { return size_problem(file).empty(); });
    if (can_open) check.facts = facts_of(TokenSet::open(check.path, TokenType::automatic, 0, progress));
  });
}

// Opening a raw file that was written since keeps new hashes beside it. So it comes last, and only where the old ones have nothing more to
// say.
void check_raw(DataCheck& check, TokenType type, const Progress& progress) {
  const std::optional<KeptScan> kept = kept_scan(check.path);
  if (kept) {
    check_files(check, {kept->file}, progress);
    if (!check.problems.empty()) return;
  }
  collect(check, [&] { check.facts = facts_of(TokenSet::open(check.path, type == TokenType::automatic && kept ? kept->type : type, 0, progress)); });
  if (!kept) check.looked_at = "all of it, whose hashes were not kept";
}

void check_pair(DataCheck& check, const ImageSet::Pair& pair, const Progress& progress) {
  collect(check, [&] {
    const ImageSet set = ImageSet::open(check.path, progress);
    check.looked_at = counted(set.size(), "image");
    check.facts = facts_of(set);
  });
  if (check.problems.empty() || pair.labels.empty()) return;
  // Opening ends with the first of two: each for itself.
  DataCheck apart;
  collect(apart, [&] { read_idx_images(pair.images); });
  collect(apart, [&] { read_idx_labels(pair.labels); });
  if (!apart.problems.empty()) check.problems = apart.problems;
}

void check_image_folder(DataCheck& check, const Progress& progress) {
  collect(check, [&] {
    const ImageSet set = ImageSet::open(check.path, progress);
    check.facts = facts_of(set);
    check.looked_at = counted(set.size(), "image");
    for (int64_t i = 0; i < set.size(); ++i) {
      collect(check, [&] { set.read(i); });
      progress("decoding " + check.path, static_cast<uint64_t>(i) + 1, static_cast<uint64_t>(set.size()));
      if (check.problems.size() <= DataCheck::listed_images) continue;
      check.problems.pop_back();
      ++check.more_problems;
    }
  });
}

bool has_folder(const std::string& path) {
  const std::vector<std::string> names = files::list(path);
  const auto is_shown = [&](const std::string& name) { return !name.starts_with('.') && files::is_folder(path + "/" + name); };
  return std::any_of(names.begin(), names.end(), is_shown);
}

bool is_token_folder(const std::string& path) { return files::exists(path + "/" + SideCar::file_name); }
bool is_raw(const std::string& path) { return path.ends_with(".bin") && files::exists(path) && !files::is_folder(path); }

}  // namespace

void require_set(const std::string& path, TokenType type) {
  if (is_token_folder(path) || ImageSet::pair_at(path)) return;
  if (!files::exists(path)) {
    throw DataError(path + ": does not exist; give a folder of tokens or images, a raw .bin file, what stands before "
                           "-images-idx3-ubyte, or a run's folder");
  }
  if (is_raw(path) && type == TokenType::automatic && !kept_scan(path)) {
    throw DataError(cat(path, ": there is nothing to compare it with: a run that reads it keeps its hashes in ",
                        raw_scan_path(path)));
  }
  if (is_raw(path) || (files::is_folder(path) && has_folder(path))) return;
  throw DataError(path + ": is no data set: neither tokens (a folder with tokens.json, a .bin file) nor images (a folder with one "
                         "for each class, an IDX pair)");
}

DataCheck check_data(const std::string& path, TokenType type, const Progress& progress) {
  require_set(path, type);
  DataCheck check{.path = path, .looked_at = "", .problems = {}, .more_problems = 0, .facts = {}};
  if (is_token_folder(path)) {
    check_token_folder(check, progress);
  } else if (const ImageSet::Pair pair = ImageSet::pair_at(path)) {
    check_pair(check, pair, progress);
  } else if (is_raw(path)) {
    check_raw(check, type, progress);
  } else {
    check_image_folder(check, progress);
  }
  return check;
}

}  // namespace quell
