#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "checkpoint/header.h"

namespace quell {
namespace {

constexpr uint64_t largest_manifest = uint64_t{1} << 28;

// "" where the tensor's bytes on the disk are those of its digest.
std::string damage_of(const SafetensorsFile& file, const ManifestTensor& tensor, const std::string& path) {
  const auto [begin, size] = file.place(tensor.name);
  Xxh3 hash;
  try {
    files::read_pieces(path, begin, size, [&](std::string_view piece) { hash.add(piece); });
  } catch (const MachineError& problem) {
    return cat("is damaged: ", problem.what());
  }
  return hash.hex_128() == tensor.digest ? "" : "is damaged: its digest is not the manifest's";
}

void compare_tensors(const SafetensorsFile& file, const ManifestFile& wanted, const std::string& path, Verify depth,
                     std::vector<std::string>& problems) {
  for (const ManifestTensor& tensor : wanted.tensors) {
    const std::string subject = cat(path, ": tensor ", tensor.name, ": ");
    if (!file.has(tensor.name)) {
      problems.push_back(subject + "is missing");
    } else if (tensor.type != stored_name(file.type(tensor.name)) || tensor.shape != file.shape(tensor.name)) {
      problems.push_back(subject + "has another type or shape than the manifest says");
    } else if (depth == Verify::full) {
      const std::string problem = damage_of(file, tensor, path);
      if (!problem.empty()) problems.push_back(subject + problem);
    }
  }
  if (file.names().size() > wanted.tensors.size()) problems.push_back(path + ": holds tensors that the manifest does not know");
}

// Nothing where the file cannot be read at all, which is then a problem.
std::optional<SafetensorsFile> open_file(const std::string& folder, const ManifestFile& wanted, Verify depth, std::vector<std::string>& problems) {
  const std::string path = folder + "/" + wanted.name;
  try {
    SafetensorsFile file(path);
    if (file.size() != wanted.bytes) {
      problems.push_back(cat(path, ": has ", file.size(), " bytes, ", wanted.bytes, " were written"));
    } else if (xxh3_128_hex(file.head()) != wanted.header) {
      problems.push_back(path + ": its header is damaged: its digest is not the manifest's");
    } else {
      compare_tensors(file, wanted, path, depth, problems);
    }
    return file;
  } catch (const CheckpointError& problem) {
    problems.emplace_back(problem.what());
    return std::nullopt;
  }
}

}  // namespace

State Checkpoint::state() const {
  State state{{}, manifest.integers, manifest.numbers};
  for (size_t i = 0; i < files.size(); ++i) {
    const std::string& name = manifest.files[i].name;
    const std::string prefix = name.substr(0, name.find('.') + 1);
    for (const std::string& tensor : files[i].names()) state.tensors[prefix + tensor] = files[i].view(tensor);
  }
  return state;
}

Manifest read_manifest(const std::string& path) {
  const std::string file = cat(path, "/", manifest_name);
  if (!files::is_folder(path)) throw CheckpointError(path + ": no such folder");
  if (!files::exists(file)) throw CheckpointError(file + ": is not there: this is no checkpoint, or a save that was never finished");
  return parse_manifest(files::read(file, largest_manifest), file);
}

Checkpoint open_checkpoint(const std::string& path, Verify depth) {
  Checkpoint checkpoint{path, read_manifest(path), {}};
  if (depth == Verify::none) return checkpoint;
  std::vector<std::string> problems;
  for (const ManifestFile& wanted : checkpoint.manifest.files) {
    if (auto file = open_file(path, wanted, depth, problems)) checkpoint.files.push_back(std::move(*file));
  }
  if (!problems.empty()) throw CheckpointError(join(problems, "\n"));
  return checkpoint;
}

std::vector<std::string> foreign_files(const Checkpoint& checkpoint) {
  std::vector<std::string> foreign;
  for (const std::string& name : files::list(checkpoint.path)) {
    const auto is_it = [&](const ManifestFile& file) { return file.name == name; };
    const auto& known = checkpoint.manifest.files;
    if (name != manifest_name && std::none_of(known.begin(), known.end(), is_it)) foreign.push_back(name);
  }
  return foreign;
}

}  // namespace quell
