// One checkpoint on the disk: opened, checked against its manifest, and its state seen through the mapped files.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/manifest.h"
#include "checkpoint/safetensors.h"
#include "tensors/state.h"

namespace quell {

struct Checkpoint {
  std::string path;
  Manifest manifest;
  std::vector<SafetensorsFile> files;  // as the manifest lists them

  // Tensors as views of the mapped files, named as Staging took them; integers and numbers.
  State state() const;
};

// Reads the manifest alone. Throws CheckpointError.
Manifest read_manifest(const std::string& path);

// Throws one CheckpointError that lists everything that is wrong with the folder, file and tensor named. `none` looks at the
// manifest alone; `sizes` at sizes, headers and their digests; `full` hashes every tensor.
Checkpoint open_checkpoint(const std::string& path, Verify depth);

// Files in the folder that the manifest does not know: of no use and no harm.
std::vector<std::string> foreign_files(const Checkpoint& checkpoint);

}  // namespace quell
