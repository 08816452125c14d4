// A folder of images with a folder for each class: DIR/<class>/**/*.{png,jpg,jpeg}, endings in any case. Looks at names only.
// Hidden files and folders, files with other endings, images that lie in no class, and links to folders below a class are left
// out and counted; links to files and to a class's folder are followed, so no loop of links is ever entered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress.h"

namespace quell {

struct ImageFolder {
  struct File {
    std::string name;  // relative to the folder
    int64_t bytes = 0, label = 0;
    int64_t modified = 0;  // nanoseconds since 1970
  };
  std::vector<std::string> classes;  // in the order of their bytes; a label is an index into it
  std::vector<File> files;           // in the order of their names' bytes
  int64_t left_out = 0;
};

// Throws DataError where there is no class, a class without images, a name that is not printable UTF-8, a link to a file that is
// not there, or a folder that holds the splits of a set instead of its classes. A folder that cannot be listed is MachineError.
ImageFolder scan_image_folder(const std::string& path, const Progress& progress);

}  // namespace quell
