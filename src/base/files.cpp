#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/system.h"
#include "base/text.h"

namespace quell::files {
namespace {

Faults& faults() {
  static Faults installed;
  return installed;
}

void write_all(int descriptor, const std::string& path, const void* bytes, size_t count) {
  const char* at = static_cast<const char*>(bytes);
  while (count > 0) {
    const int reason = fault("write", path);
    if (reason > 0) errno = reason;
    const ssize_t written = reason > 0 ? -1 : ::write(descriptor, at, reason < 0 ? (count + 1) / 2 : count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "cannot be written");
    at += written;
    count -= static_cast<size_t>(written);
  }
}

void rename_over(const std::string& from, const std::string& to) {
  if (!allowed("rename", to) || ::rename(from.c_str(), to.c_str()) != 0) fail(to, "cannot be renamed into place");
}

bool make_folder(const std::string& path) {
  if (allowed("mkdir", path) && ::mkdir(path.c_str(), 0777) == 0) return true;
  if (errno != EEXIST) fail(path, "cannot be made");
  return false;
}

}  // namespace

void set_faults(Faults wanted) { faults() = std::move(wanted); }

int fault(const char* operation, const std::string& path) { return faults() ? faults()(operation, path) : 0; }

bool allowed(const char* operation, const std::string& path) {
  const int reason = fault(operation, path);
  if (reason > 0) errno = reason;
  return reason <= 0;
}

void fail(const std::string& path, const char* what) {
  const int reason = errno;
  throw MachineError(cat(path, ": ", what, ": ", std::strerror(reason)));
}

Descriptor::~Descriptor() {
  if (value >= 0) ::close(value);
}

std::string parent_of(const std::string& path) {
  const size_t last = path.find_last_not_of('/');
  const size_t slash = last == std::string::npos ? std::string::npos : path.rfind('/', last);
  if (slash == std::string::npos) return path.starts_with('/') ? "/" : ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool exists(const std::string& path) {
  struct stat found;
  return ::stat(path.c_str(), &found) == 0;
}

bool is_folder(const std::string& path) {
  struct stat found;
  return ::stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

bool is_link(const std::string& path) {
  struct stat found;
  return ::lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode);
}

uint64_t size(const std::string& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0) fail(path, "cannot be examined");
  return static_cast<uint64_t>(found.st_size);
}

int64_t modified(const std::string& path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0) fail(path, "cannot be examined");
  return int64_t{found.st_mtim.tv_sec} * 1000000000 + found.st_mtim.tv_nsec;
}

uint64_t free_bytes(const std::string& folder) {
  struct statvfs found;
  if (::statvfs(folder.c_str(), &found) != 0) fail(folder, "cannot be examined");
  return static_cast<uint64_t>(found.f_bavail) * found.f_frsize;
}

void forget_cached(const std::string& path) {
  const Descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.value < 0) fail(path, "cannot be opened");
  ::posix_fadvise(opened.value, 0, 0, POSIX_FADV_DONTNEED);  // advice: where it is not taken, nothing is lost
}

void truncate(const std::string& path, uint64_t bytes) {
  const Descriptor opened(allowed("write", path) ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC) : -1);
  if (opened.value < 0 || ::ftruncate(opened.value, static_cast<off_t>(bytes)) != 0) fail(path, "cannot be cut");
  if (!allowed("fsync", path) || ::fsync(opened.value) != 0) fail(path, "cannot be synced");
}

std::vector<std::string> list(const std::string& folder) {
  DIR* opened = ::opendir(folder.c_str());
  if (!opened) fail(folder, "cannot be listed");
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(opened)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  ::closedir(opened);
  std::sort(names.begin(), names.end());
  return names;
}

void make_folders(const std::string& path) {
  if (is_folder(path)) return;
  if (const std::string parent = parent_of(path); parent != path) make_folders(parent);
  if (!make_folder(path) && !is_folder(path)) {
    errno = ENOTDIR;
    fail(path, "cannot be made");
  }
}

bool make_new_folder(const std::string& path) {
  make_folders(parent_of(path));
  return make_folder(path);
}

std::string read(const std::string& path, uint64_t limit) {
  const Descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.value < 0) fail(path, "cannot be opened");
  struct stat found;
  if (::fstat(opened.value, &found) != 0) fail(path, "cannot be examined");
  // The size is only a first guess: files of /proc say 0, and pipes have none.
  std::string bytes;
  size_t have = 0;
  bytes.resize(static_cast<size_t>(std::min<uint64_t>(static_cast<uint64_t>(found.st_size), limit)) + 1);
  while (true) {
    const ssize_t got = ::read(opened.value, bytes.data() + have, bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot be read");
    if (got == 0) break;
    have += static_cast<size_t>(got);
    if (have > limit) throw MachineError(cat(path, ": larger than the ", limit, " bytes that are allowed here"));
    if (have == bytes.size()) bytes.resize(2 * bytes.size());
  }
  bytes.resize(have);
  return bytes;
}

namespace {

// How many bytes there were.
uint64_t deliver(const Descriptor& opened, const std::string& path, uint64_t begin, uint64_t size,
                 const std::function<void(std::string_view)>& take) {
  std::string piece(std::min<uint64_t>(size, uint64_t{1} << 20), '\0');
  uint64_t done = 0;
  while (done < size) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(piece.size(), size - done));
    const ssize_t got = ::pread(opened.value, piece.data(), wanted, static_cast<off_t>(begin + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "cannot be read");
    if (got == 0) break;
    take(std::string_view(piece).substr(0, static_cast<size_t>(got)));
    done += static_cast<uint64_t>(got);
  }
  return done;
}

}  // namespace

void read_pieces(const std::string& path, uint64_t begin, uint64_t size, const std::function<void(std::string_view)>& take) {
  const Descriptor opened(allowed("read", path) ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (opened.value < 0) fail(path, "cannot be read");
  const uint64_t done = deliver(opened, path, begin, size, take);
  if (done < size) throw MachineError(cat(path, ": ends after ", begin + done, " bytes"));
}

void sync_folder(const std::string& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.value < 0) fail(folder, "cannot be opened");
  // EINVAL: a file system that has no such operation for folders.
  if (!allowed("fsync", folder) || (::fsync(opened.value) != 0 && errno != EINVAL)) fail(folder, "cannot be synced");
}

bool rename_new(const std::string& from, const std::string& to) {
  const bool may = allowed("rename", to);
  int status = may ? ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) : -1;
  if (may && status != 0 && errno == EINVAL) {  // a file system that cannot do it in one operation
    if (exists(to)) return false;
    status = ::rename(from.c_str(), to.c_str());
  }
  if (status != 0 && (errno == EEXIST || errno == ENOTEMPTY)) return false;
  if (status != 0) fail(to, "cannot be renamed into place");
  sync_folder(parent_of(to));
  return true;
}

void remove_all(const std::string& path) {
  struct stat found;
  if (::lstat(path.c_str(), &found) != 0) {
    if (errno == ENOENT) return;
    fail(path, "cannot be examined");
  }
  const bool folder = S_ISDIR(found.st_mode);
  if (folder) {
    try {
      for (const auto& name : list(path)) remove_all(path + "/" + name);
    } catch (const MachineError&) {
      if (::lstat(path.c_str(), &found) == 0) throw;  // else another process was quicker
    }
  }
  const bool gone = allowed("unlink", path) && (folder ? ::rmdir(path.c_str()) : ::unlink(path.c_str())) == 0;
  if (!gone && errno != ENOENT) fail(path, "cannot be removed");  // ENOENT: another process was quicker
}

void write_atomically(const std::string& path, std::string_view bytes) {
  Output output(path);
  output.write(bytes.data(), bytes.size());
  output.commit();
}

Output::Output(std::string path, Way way) : path_(std::move(path)), temporary_(way == Way::in_place ? path_ : "") {
  static std::atomic<uint64_t> made{0};
  do {  // another machine that shares the disk may have the same process id
    if (way == Way::beside) temporary_ = cat(path_, ".tmp-", ::getpid(), "-", made++);
    descriptor_ = allowed("open", path_) ? ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
  } while (descriptor_ < 0 && errno == EEXIST && way == Way::beside);
  if (descriptor_ < 0) {
    temporary_.clear();
    fail(path_, "cannot be created");
  }
}

Output::~Output() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty() && allowed("unlink", temporary_)) ::unlink(temporary_.c_str());
}

void Output::write(const void* bytes, size_t count) {
  require(descriptor_ >= 0, "files::Output: write after commit");
  write_all(descriptor_, path_, bytes, count);
}

void Output::commit() {
  require(descriptor_ >= 0, "files::Output: committed twice");
  if (!allowed("fsync", path_) || ::fsync(descriptor_) != 0) fail(path_, "cannot be synced");
  const int status = ::close(std::exchange(descriptor_, -1));
  if (status != 0) fail(path_, "cannot be closed");
  const std::string written = std::exchange(temporary_, "");
  if (written == path_) return;
  try {
    rename_over(written, path_);
  } catch (const MachineError&) {
    temporary_ = written;  // to be removed
    throw;
  }
  sync_folder(parent_of(path_));
}

Appender::Appender(const std::string& path) : path_(path) {
  descriptor_ = allowed("open", path) ? ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
  if (descriptor_ < 0) fail(path, "cannot be opened for appending");
}

Appender::~Appender() { ::close(descriptor_); }

uint64_t Appender::size() const {
  struct stat found;
  if (::fstat(descriptor_, &found) != 0) fail(path_, "cannot be examined");
  return static_cast<uint64_t>(found.st_size);
}

void Appender::sync() {
  if (!allowed("fsync", path_) || ::fsync(descriptor_) != 0) fail(path_, "cannot be synced");
}

void Appender::write_line(std::string_view line) {
  std::string bytes(line);
  bytes += '\n';
  struct stat before;
  if (::fstat(descriptor_, &before) != 0) fail(path_, "cannot be examined");
  try {
    write_all(descriptor_, path_, bytes.data(), bytes.size());
  } catch (const MachineError&) {
    // A full disk takes a part of the line, and without that part the file is whole. Where this fails too, nothing can
    // be done.
    [[maybe_unused]] const int status = S_ISREG(before.st_mode) ? ::ftruncate(descriptor_, before.st_size) : 0;
    throw;
  }
}

Mapping::Mapping(const std::string& path) {
  const Descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.value < 0) fail(path, "cannot be opened");
  struct stat found;
  if (::fstat(opened.value, &found) != 0) fail(path, "cannot be examined");
  if (!S_ISREG(found.st_mode)) throw MachineError(path + ": cannot be mapped: not a regular file");
  size_ = static_cast<size_t>(found.st_size);
  device_ = found.st_dev;
  inode_ = found.st_ino;
  if (size_ == 0) return;  // mmap refuses empty ranges
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, opened.value, 0);
  if (mapped == MAP_FAILED) fail(path, "cannot be mapped");
  data_ = static_cast<const std::byte*>(mapped);
}

Mapping::~Mapping() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

Mapping::Mapping(Mapping&& other) noexcept { *this = std::move(other); }

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(device_, other.device_);
  std::swap(inode_, other.inode_);
  return *this;
}

std::optional<uint64_t> Mapping::size_at(const std::string& path) const {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0 || found.st_dev != device_ || found.st_ino != inode_) return std::nullopt;
  return static_cast<uint64_t>(found.st_size);
}

std::optional<uint64_t> Mapping::read_pieces_at(const std::string& path, uint64_t begin, uint64_t size,
                                                const std::function<void(std::string_view)>& take) const {
  const Descriptor opened(allowed("read", path) ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1);
  if (opened.value < 0 && errno == ENOENT) return std::nullopt;
  if (opened.value < 0) fail(path, "cannot be read");
  struct stat found;
  if (::fstat(opened.value, &found) != 0) fail(path, "cannot be examined");
  if (found.st_dev != device_ || found.st_ino != inode_) return std::nullopt;
  return deliver(opened, path, begin, size, take);
}

}  // namespace quell::files
