#include "data/image_set.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/idx.h"
#include "data/image_codec.h"
#include "data/image_folder.h"

namespace quell {
namespace {

constexpr uint64_t file_limit = uint64_t{256} << 20;  // of one PNG or JPEG file
constexpr const char* images_ending = "-images-idx3-ubyte";
constexpr const char* labels_ending = "-labels-idx1-ubyte";

// PREFIX + ending, plain or packed; "" where neither is there.
std::string found(const std::string& prefix, const char* ending) {
  for (const char* packed : {"", ".gz"}) {
    if (files::exists(prefix + ending + packed)) return prefix + ending + packed;
  }
  return "";
}

std::string_view view(const std::vector<uint8_t>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// What a path that is neither was probably meant to be.
std::string hint(const std::string& path) {
  for (const char* split : {"/train", "/t10k"}) {
    if (!found(path + split, images_ending).empty()) return cat("; did you mean ", path, split, "?");
  }
  const size_t ending = path.find(images_ending);
  return ending == std::string::npos ? "" : cat("; did you mean ", path.substr(0, ending), "?");
}

// Before the file is read, so that a later change is seen by its time.
DataPart file_part(const std::string& path) {
  return {.name = path.substr(path.rfind('/') + 1), .bytes = static_cast<int64_t>(files::size(path)), .modified = files::modified(path)};
}

std::vector<DataPart> class_parts(const ImageFolder& folder) {
  std::vector<DataPart> parts;
  for (const std::string& name : folder.classes) parts.push_back({.name = name, .files = 0, .is_class = true});
  std::vector<Xxh3> digests(parts.size());
  for (const auto& file : folder.files) {
    const auto label = static_cast<size_t>(file.label);
    DataPart& part = parts[label];
    ++part.files;
    part.bytes += file.bytes;
    part.modified = std::max(part.modified, file.modified);
    digests[label].add(cat(file.name, '\0', file.bytes, '\0'));
  }
  for (size_t i = 0; i < parts.size(); ++i) parts[i].digest = digests[i].hex_128();
  return parts;
}

}  // namespace

struct ImageSet::Contents {
  std::string path, digest;
  std::vector<DataPart> parts;
  std::vector<std::string> classes;
  // One of these two is filled.
  IdxImages images;
  std::string images_path, labels_path;
  std::vector<uint8_t> labels;
  ImageFolder folder;

  bool is_idx() const { return images.count > 0; }
  size_t checked(int64_t i) const {
    require(i >= 0 && i < (is_idx() ? images.count : static_cast<int64_t>(folder.files.size())),
            "ImageSet: an image outside the set");
    return static_cast<size_t>(i);
  }
};

ImageSet::Pair ImageSet::pair_at(const std::string& path) {
  const std::string images = found(path, images_ending);
  return images.empty() ? Pair() : Pair{images, found(path, labels_ending)};
}

ImageSet::Contents ImageSet::open_idx(const std::string& prefix, const Pair& files) {
  Contents contents;
  const std::string& images = files.images;
  contents.images_path = images;
  contents.labels_path = files.labels;
  if (contents.labels_path.empty()) throw DataError(cat(images, ": has no ", prefix, labels_ending, "(.gz) beside it"));
  contents.parts = {file_part(images), file_part(files.labels)};
  contents.images = read_idx_images(images);
  contents.labels = read_idx_labels(contents.labels_path);
  const auto labels = static_cast<int64_t>(contents.labels.size());
  if (labels != contents.images.count) {
    throw DataError(cat(contents.labels_path, ": byte 4: has ", labels, " labels, and ", images, " has ", contents.images.count,
                        " images: they do not belong together"));
  }
  const int largest = *std::max_element(contents.labels.begin(), contents.labels.end());
  for (int c = 0; c <= largest; ++c) contents.classes.push_back(std::to_string(c));
  contents.parts[0].digest = xxh3_128_hex(view(contents.images.values));
  contents.parts[1].digest = xxh3_128_hex(view(contents.labels));
  contents.digest = xxh3_128_hex(cat("idx ", contents.images.height, " ", contents.images.width, " ", contents.parts[0].digest, " ",
                                     contents.parts[1].digest));
  return contents;
}

ImageSet::Contents ImageSet::open_folder(const std::string& path, const Progress& progress) {
  Contents contents;
  contents.folder = scan_image_folder(path, progress);
  contents.classes = contents.folder.classes;
  std::string list = "folder";
  for (const auto& name : contents.classes) list += cat('\0', name);
  for (const auto& file : contents.folder.files) list += cat('\0', file.name, '\0', file.bytes, '\0', file.label);
  contents.digest = xxh3_128_hex(list);
  contents.parts = class_parts(contents.folder);
  if (contents.folder.left_out > 0) {
    progress.note(cat(path, ": left out, being no images of a class: ", contents.folder.left_out, " files, folders or links"));
  }
  return contents;
}

ImageSet ImageSet::open(const std::string& path, const Progress& progress) {
  const Pair pair = pair_at(path);
  if (pair && files::is_folder(path)) {
    throw DataError(cat(path, ": is a folder, and ", pair.images, " is there too: rename one of them"));
  }
  if (!pair && !files::exists(path)) throw DataError(cat(path, ": is not there", hint(path)));
  if (!pair && !files::is_folder(path)) {
    throw DataError(
        cat(path, ": is neither a folder with a folder for each class nor what stands before ", images_ending, hint(path)));
  }
  if (!pair && !hint(path).empty()) throw DataError(cat(path, ": holds IDX files", hint(path)));
  Contents contents = pair ? open_idx(path, pair) : open_folder(path, progress);
  contents.path = path;
  ImageSet set;
  set.contents_ = std::make_shared<const Contents>(std::move(contents));
  return set;
}

int64_t ImageSet::size() const {
  return contents_->is_idx() ? contents_->images.count : static_cast<int64_t>(contents_->folder.files.size());
}
int64_t ImageSet::classes() const { return static_cast<int64_t>(contents_->classes.size()); }
const std::vector<std::string>& ImageSet::class_names() const { return contents_->classes; }
const std::string& ImageSet::path() const { return contents_->path; }
std::string ImageSet::digest() const { return contents_->digest; }
std::vector<DataPart> ImageSet::parts() const { return contents_->parts; }

void ImageSet::check_classes(int64_t limit) const {
  if (classes() <= limit) return;
  if (!contents_->is_idx()) {
    throw DataError(cat(contents_->path, ": has ", classes(), " classes (folders), and the model tells ", limit, " apart"));
  }
  const auto& labels = contents_->labels;
  const auto wrong = std::find_if(labels.begin(), labels.end(), [&](uint8_t label) { return label >= limit; });
  const int64_t index = wrong - labels.begin();
  throw DataError(cat(contents_->labels_path, ": byte ", idx_label_offset(index), ": the label of image ", index, " is ",
                      int{*wrong}, ", and the model tells ", limit, " classes apart (0 to ", limit - 1, ")"));
}

int64_t ImageSet::label(int64_t i) const {
  const size_t at = contents_->checked(i);
  return contents_->is_idx() ? contents_->labels[at] : contents_->folder.files[at].label;
}

std::string ImageSet::name(int64_t i) const {
  const size_t at = contents_->checked(i);
  if (contents_->is_idx()) return cat(contents_->images_path, ": image ", i);
  return contents_->path + "/" + contents_->folder.files[at].name;
}

Pixels ImageSet::read(int64_t i) const {
  const size_t at = contents_->checked(i);
  if (contents_->is_idx()) {
    const IdxImages& all = contents_->images;
    const auto begin = all.values.begin() + i * all.height * all.width;
    return {all.width, all.height, 1, {begin, begin + all.height * all.width}};
  }
  const std::string path = name(static_cast<int64_t>(at));
  // Only these two are faults of the image; what else goes wrong with reading (a dead disk) is no reason to skip it.
  if (!files::exists(path)) throw DataError(path + ": is gone; it was there when the set was opened");
  if (files::size(path) > file_limit) {
    throw DataError(cat(path, ": has ", files::size(path), " bytes, more than the ", file_limit, " that an image may have"));
  }
  return decode_image(files::read(path, file_limit), path);
}

}  // namespace quell
