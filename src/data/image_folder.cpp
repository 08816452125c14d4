#include "data/image_folder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const std::string& name) { return name.starts_with('.'); }

bool has_image_ending(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

// Without exceptions: a link that leads nowhere is no folder.
bool is_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}
bool is_link(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_symlink(ignored);
}

std::string quoted(const std::string& name) {
  std::string out;
  for (const char c : name) {
    constexpr const char* digits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(c);
    out += byte >= 0x20 && byte < 0x7f ? std::string{c} : std::string{'\\', 'x', digits[byte >> 4], digits[byte & 15]};
  }
  return '"' + out + '"';
}

// Names go into messages, metrics and the run folder.
void check_name(const std::string& folder, const std::string& name) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (is_utf8(name) && std::none_of(name.begin(), name.end(), is_control)) return;
  throw DataError(cat(folder, ": holds the name ", quoted(name), ", which is not printable UTF-8: rename it"));
}

class Scan {
 public:
  Scan(std::string root, const Progress& progress) : root_(std::move(root)), progress_(progress) {}

  ImageFolder run() {
    std::vector<std::string> folders;
    for (const auto& entry : entries(root_)) {
      const std::string name = entry.path().filename().string();
      const bool is_class = is_folder(entry) && !is_hidden(name);
      loose_images_ += !is_class && has_image_ending(name) && !is_hidden(name);
      if (is_class) check_name(root_, name);
      if (is_class) folders.push_back(name);
      if (!is_class) ++found_.left_out;
    }
    std::sort(folders.begin(), folders.end());
    check_classes(folders);
    found_.classes = folders;
    for (size_t i = 0; i < folders.size(); ++i) add_class(folders[i], static_cast<int64_t>(i));
    std::sort(found_.files.begin(), found_.files.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return std::move(found_);
  }

 private:
  std::vector<fs::directory_entry> entries(const std::string& folder) const {
    std::error_code failed;
    std::vector<fs::directory_entry> all;
    fs::directory_iterator next(folder, failed);
    for (; !failed && next != fs::directory_iterator(); next.increment(failed)) all.push_back(*next);
    if (failed) throw MachineError(cat(folder, ": cannot be listed: ", failed.message()));
    return all;
  }

  void check_classes(const std::vector<std::string>& folders) const {
    constexpr std::array splits{"train", "val", "valid", "validation", "test"};
    const auto is_split = [&](const std::string& name) { return std::find(splits.begin(), splits.end(), name) != splits.end(); };
    if (folders.empty()) {
      throw DataError(cat(root_, ": has no folder, and there must be one for each class",
                          loose_images_ > 0 ? cat(" (", loose_images_, " images lie in it without one)") : ""));
    }
    if (std::all_of(folders.begin(), folders.end(), is_split)) {
      throw DataError(cat(root_, ": holds the parts of a set (", join(folders, ", "), ") and not its classes; did you mean ",
                          root_, "/", folders.front(), "?"));
    }
  }

  void add_class(const std::string& name, int64_t label) {
    const size_t before = found_.files.size();
    add_files(name, label);
    if (found_.files.size() == before) {
      throw DataError(
          cat(root_, "/", name, ": holds no .png, .jpg or .jpeg file: every folder here is a class; remove it or fill it"));
    }
    progress_("listing " + root_, static_cast<uint64_t>(label) + 1, found_.classes.size());
  }

  // `inside` is relative to the root.
  void add_files(const std::string& inside, int64_t label) {
    const std::string folder = root_ + "/" + inside;
    for (const auto& entry : entries(folder)) {
      const std::string name = entry.path().filename().string();
      if (is_hidden(name) || (is_folder(entry) && is_link(entry))) {
        ++found_.left_out;
      } else if (is_folder(entry)) {
        check_name(folder, name);
        add_files(inside + "/" + name, label);
      } else if (!has_image_ending(name)) {
        ++found_.left_out;
      } else {
        check_name(folder, name);
        add_file(entry, inside + "/" + name, label);
      }
    }
  }

  void add_file(const fs::directory_entry& entry, std::string name, int64_t label) {
    std::error_code failed;
    const bool is_file = entry.is_regular_file(failed);
    const auto bytes = is_file && !failed ? entry.file_size(failed) : 0;
    const auto written = is_file && !failed ? entry.last_write_time(failed) : fs::file_time_type();
    if (is_link(entry) && failed) {
      throw DataError(
          cat(root_, "/", name, ": is a link to what cannot be reached (", failed.message(), "): remove it or mend it"));
    }
    if (failed) throw MachineError(cat(root_, "/", name, ": cannot be examined: ", failed.message()));
    if (!is_file) throw DataError(cat(root_, "/", name, ": is no regular file: remove it"));
    const auto modified = std::chrono::file_clock::to_sys(written).time_since_epoch();
    found_.files.push_back({std::move(name), static_cast<int64_t>(bytes), label, std::chrono::nanoseconds(modified).count()});
  }

  std::string root_;
  const Progress& progress_;
  ImageFolder found_;
  int64_t loose_images_ = 0;
};

}  // namespace

ImageFolder scan_image_folder(const std::string& path, const Progress& progress) {
  const size_t end = path.find_last_not_of('/');  // no empty part in the names of files
  return Scan(end == std::string::npos ? path : path.substr(0, end + 1), progress).run();
}

}  // namespace quell
