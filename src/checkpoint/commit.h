// How a checkpoint comes to be on the disk: all of it or nothing, whatever happens to the program or the machine meanwhile.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/config.h"
#include "checkpoint/manifest.h"
#include "checkpoint/staging.h"

namespace quell {

// step-00000600
std::string checkpoint_name(int64_t step);

// Fills in manifest.files and writes the checkpoint FOLDER/step-N:
//   a hidden folder of its own, whose name nobody else has; every file made new, written whole, synced, closed;
//   the manifest last, synced; the hidden folder synced; renamed to its name, which must be free; FOLDER synced;
//   then read back as deep as `verify` says.
// A checkpoint of that step that is there already stays where it is sound and of the same run (it holds the same), makes way where it
// is not sound, and is an error where it is another run's. Returns its path. Calls no operator of LibTorch. On any error (MachineError of the disk, CheckpointError
// where it cannot be read back) the hidden folder is removed, and what was in FOLDER before is as it was: in particular nothing is
// tried again on a file whose fsync failed, since the system may have thrown its pages away and then report success.
std::string commit(const std::string& folder, const std::vector<StagedFile>& files, Manifest manifest, Verify verify);

// Removes FOLDER/step-N, under a hidden name, so that no moment shows a part of it under its own.
void remove_checkpoint(const std::string& path);

// The bytes that commit() will write, and a fifth on top for the file system. Throws MachineError where the disk has not so many.
void require_space(const std::string& folder, const std::vector<StagedFile>& files);

}  // namespace quell
