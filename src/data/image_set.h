// Image data sets: an IDX pair, held in memory, or a folder of PNG and JPEG files for each class, decoded when read. A set is a
// value: copies share the contents. No torch in here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "data/part.h"
#include "data/pixels.h"

namespace quell {

class ImageSet {
 public:
  // `path` is DIR/NAME of an IDX pair where DIR/NAME-images-idx3-ubyte or the same with .gz is there (the labels lie beside it as
  // NAME-labels-idx1-ubyte or with .gz; a plain file is taken before a packed one), and else a folder of classes
  // (data/image_folder.h). Throws DataError.
  static ImageSet open(const std::string& path, const Progress& progress);
  // The files of the IDX pair that open() would take: none where it would take a folder; the labels' name is "" where they are missing.
  struct Pair {
    std::string images, labels;
    explicit operator bool() const { return !images.empty(); }
  };
  static Pair pair_at(const std::string& path);

  int64_t size() const;
  int64_t classes() const;                              // of an IDX pair: the largest label + 1
  const std::vector<std::string>& class_names() const;  // of an IDX pair: "0", "1", ...
  // Throws DataError, with the place of the label or class, where there are more classes than a model tells apart.
  void check_classes(int64_t limit) const;
  int64_t label(int64_t i) const;
  std::string name(int64_t i) const;  // the image's file, or its number in one: for messages
  // Thread-safe. Throws DataError for an image that is gone or cannot be decoded; only folders have such.
  Pixels read(int64_t i) const;

  const std::string& path() const;
  // What the run folder records: a hash of all images and labels of an IDX pair, and of the names, sizes and classes of a
  // folder's files, whose contents are not read.
  std::string digest() const;
  // The two files of a pair, whose digests are of what is in them unpacked; else the classes.
  std::vector<DataPart> parts() const;

 private:
  struct Contents;
  static Contents open_idx(const std::string& prefix, const Pair& files);
  static Contents open_folder(const std::string& path, const Progress& progress);
  std::shared_ptr<const Contents> contents_;
};

}  // namespace quell
