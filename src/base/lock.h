// Locks between processes.
#pragma once

#include <optional>
#include <string>

namespace quell::files {

// An exclusive lock on a file (flock), by which others see whether who made it still lives: it ends with the process, however
// that ends. The file stays. Where the file system knows no locks, a file is never seen as left.
class Lock {
 public:
  // Makes and locks `path`; nothing where it is there already, or was taken away before it was locked.
  static std::optional<Lock> make(const std::string& path);
  // Locks a file that somebody left; nothing where it is not there or its owner lives.
  static std::optional<Lock> take_over(const std::string& path);
  // Makes the file where it is not there, locks it and writes `text` into it, by which others know the owner; nothing where
  // its owner lives. The file is empty again once the lock is let go; what a killed owner wrote stays.
  // `former`: what a killed owner has left. Where the file system knows no locks, it is held by whoever asks.
  static std::optional<Lock> hold(const std::string& path, const std::string& text, std::string& former);
  ~Lock();
  Lock(Lock&& other) noexcept;
  Lock& operator=(Lock&& other) noexcept;

 private:
  explicit Lock(int descriptor) : descriptor_(descriptor) {}
  bool acquire() const;
  bool is_still_at(const std::string& path) const;
  int descriptor_;
  bool has_text_ = false;
};

}  // namespace quell::files
