#include "checkpoint/commit.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/header.h"

namespace quell {
namespace {

using files::Output;

ManifestFile write_file(const std::string& folder, const StagedFile& file) {
  std::vector<StoredTensor> stored;
  for (const StagedTensor& tensor : file.tensors) stored.push_back({tensor.name, tensor.type, tensor.shape});
  const std::string head = head_of(stored, {});
  ManifestFile written{file.name, head.size(), xxh3_128_hex(head), {}};
  Output output(folder + "/" + file.name, Output::Way::in_place);
  output.write(head.data(), head.size());
  for (const StagedTensor& tensor : file.tensors) {
    written.tensors.push_back({tensor.name, stored_name(tensor.type), tensor.shape, xxh3_128_hex({tensor.at, tensor.bytes})});
    output.write(tensor.at, tensor.bytes);
    written.bytes += tensor.bytes;
  }
  output.commit();
  return written;
}

void write_all(const std::string& hidden, const std::vector<StagedFile>& files, Manifest& manifest) {
  for (const StagedFile& file : files) manifest.files.push_back(write_file(hidden, file));
  const std::string text = manifest_text(manifest);
  Output output(cat(hidden, "/", manifest_name), Output::Way::in_place);
  output.write(text.data(), text.size());
  output.commit();
  files::sync_folder(hidden);
}

void read_back(const std::string& path, const Manifest& manifest, Verify verify) {
  if (verify == Verify::full) {
    for (const ManifestFile& file : manifest.files) files::forget_cached(path + "/" + file.name);
  }
  if (verify != Verify::none) open_checkpoint(path, verify);
}

// The first error is the news: what cannot be removed now is removed at the next start.
void abandon(const std::string& hidden, const std::string& renamed) {
  try {
    if (!renamed.empty() && files::exists(renamed)) remove_checkpoint(renamed);
    files::remove_all(hidden);
  } catch (const MachineError&) {
  }
}

// Whether a sound checkpoint of the same run and step is there, which holds what was to be written. What is not ours is nobody's to
// remove.
bool holds_already(const std::string& path, const Manifest& manifest) {
  const auto is_ours = [](const std::string& name) { return name == manifest_name || name.ends_with(".safetensors"); };
  const bool is_plain = files::is_folder(path) && !files::is_link(path);
  const std::vector<std::string> names = is_plain ? files::list(path) : std::vector<std::string>();
  if (!is_plain || !std::all_of(names.begin(), names.end(), is_ours)) {
    throw MachineError(path + ": is in the way, and is not or not only a checkpoint of ours: move it away");
  }
  Manifest there;
  try {
    there = open_checkpoint(path, Verify::full).manifest;
  } catch (const CheckpointError&) {
    return false;
  }
  if (there.run != manifest.run) throw MachineError(path + ": is a checkpoint of another run");
  return there.step == manifest.step;
}

}  // namespace

std::string checkpoint_name(int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < 8) digits.insert(0, 8 - digits.size(), '0');
  return "step-" + digits;
}

std::string commit(const std::string& folder, const std::vector<StagedFile>& files, Manifest manifest, Verify verify) {
  const std::string name = checkpoint_name(manifest.step), path = folder + "/" + name;
  const std::string hidden = cat(folder, "/.", name, ".tmp-", manifest.save);
  if (files::exists(path) || files::is_link(path)) {
    if (holds_already(path, manifest)) return path;
    remove_checkpoint(path);
  }
  bool is_ours = false;  // what is at `path`
  try {
    if (!files::make_new_folder(hidden)) throw MachineError(hidden + ": is there already");
    write_all(hidden, files, manifest);
    is_ours = !files::exists(path);  // where the rename succeeds and what follows it does not
    if (!files::rename_new(hidden, path)) {
      is_ours = false;
      throw MachineError(path + ": was made by somebody else meanwhile");
    }
    read_back(path, manifest, verify);
    return path;
  } catch (...) {
    abandon(hidden, is_ours ? path : "");
    throw;
  }
}

void remove_checkpoint(const std::string& path) {
  const size_t slash = path.rfind('/') + 1;
  const std::string hidden = cat(path.substr(0, slash), ".", path.substr(slash), ".old-0");
  files::remove_all(hidden);
  if (files::rename_new(path, hidden)) files::remove_all(hidden);
}

void require_space(const std::string& folder, const std::vector<StagedFile>& files) {
  uint64_t bytes = 1 << 16;
  for (const StagedFile& file : files) {
    for (const StagedTensor& tensor : file.tensors) bytes += tensor.bytes + 256;
  }
  const uint64_t wanted = bytes + bytes / 5, free = files::free_bytes(folder);
  if (free >= wanted) return;
  throw MachineError(cat(folder, ": a checkpoint needs ", human_bytes(static_cast<double>(wanted)), ", and the disk has ",
                         human_bytes(static_cast<double>(free)), " left"));
}

}  // namespace quell
