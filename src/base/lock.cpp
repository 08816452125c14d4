#include "base/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/system.h"

namespace quell::files {

std::optional<Lock> Lock::make(const std::string& path) {
  const int opened = allowed("open", path) ? ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
  if (opened < 0 && (errno == EEXIST || errno == ENOENT)) return std::nullopt;
  if (opened < 0) fail(path, "cannot be created");
  Lock lock(opened);
  // Before the lock was taken, take_over() of another process may have taken the file for a dead one's.
  const bool lost = !lock.acquire() && errno == EWOULDBLOCK;
  if (lost || !lock.is_still_at(path)) return std::nullopt;
  return lock;
}

std::optional<Lock> Lock::take_over(const std::string& path) {
  const int opened = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (opened < 0) return std::nullopt;
  Lock lock(opened);
  if (!lock.acquire() || !lock.is_still_at(path)) return std::nullopt;
  return lock;
}

std::optional<Lock> Lock::hold(const std::string& path, const std::string& text, std::string& former) {
  while (true) {
    const int opened = allowed("open", path) ? ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666) : -1;
    if (opened < 0) fail(path, "cannot be opened");
    Lock lock(opened);
    if (!lock.acquire() && errno == EWOULDBLOCK) return std::nullopt;
    if (!lock.is_still_at(path)) continue;  // somebody removed it meanwhile
    char found[4096];
    const ssize_t count = ::pread(opened, found, sizeof found, 0);
    former.assign(found, static_cast<size_t>(count < 0 ? 0 : count));
    const bool written = ::ftruncate(opened, 0) == 0 && ::pwrite(opened, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
    if (!written) fail(path, "cannot be written");
    lock.has_text_ = true;
    return lock;
  }
}

bool Lock::acquire() const {
  while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

bool Lock::is_still_at(const std::string& path) const {
  struct stat held, found;
  return ::fstat(descriptor_, &held) == 0 && ::stat(path.c_str(), &found) == 0 && held.st_dev == found.st_dev &&
         held.st_ino == found.st_ino;
}

Lock::~Lock() {
  if (descriptor_ < 0) return;
  [[maybe_unused]] const int status = has_text_ ? ::ftruncate(descriptor_, 0) : 0;  // only for people to read
  ::close(descriptor_);
}

Lock::Lock(Lock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)), has_text_(other.has_text_) {}

Lock& Lock::operator=(Lock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(has_text_, other.has_text_);
  return *this;
}

}  // namespace quell::files
