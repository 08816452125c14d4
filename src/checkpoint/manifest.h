// manifest.json, the last file that is written into a checkpoint: what the others hold, byte by byte, and the numbers that are no
// tensors. Every byte of a checkpoint is covered by a digest in it, and its own bytes by one at its end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace quell {

// The newest format that is written, and the newest that is read. Every older one is read for ever.
inline constexpr int64_t checkpoint_format = 1;
inline constexpr const char* manifest_name = "manifest.json";

struct ManifestTensor {
  std::string name, type;  // the type as safetensors spells it
  std::vector<int64_t> shape;
  std::string digest;  // xxh3-128 of its bytes
};

struct ManifestFile {
  std::string name;  // within the folder
  uint64_t bytes = 0;
  std::string header;  // xxh3-128 of what stands before the first tensor
  std::vector<ManifestTensor> tensors;  // by name
};

struct Manifest {
  int64_t step = 0;      // updates made or left out as bad when it was saved
  std::string save;      // of this save alone: 32 hexadecimal digits
  std::string run;       // of the run, from its first start through every resume
  std::string config;    // the run file, in which everything is resolved
  std::string quell, libtorch;  // versions
  int64_t world = 1;     // ranks
  Json data = Json::object();  // what was trained on: paths, sizes, digests
  std::map<std::string, int64_t> integers;
  std::map<std::string, double> numbers;   // finite
  std::map<std::string, double> metrics;   // of the last evaluation before it
  std::vector<ManifestFile> files;

  // All digests of contents in one: equal for two saves of the same state, whoever made them.
  std::string content_digest() const;
  uint64_t bytes() const;  // of all files
};

std::string manifest_text(const Manifest& manifest);

// Throws CheckpointError that begins with `path`: another digest than the text's, a newer format, anything missing, unknown or of
// another kind.
Manifest parse_manifest(std::string_view text, const std::string& path);

}  // namespace quell
