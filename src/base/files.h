// Files: whole reads, atomic writes, appends and read-only mappings. Every call that changes the disk goes through one
// seam (Faults), by which tests make the n-th write, fsync or rename fail as a full disk would. Errors are MachineError
// and name the path and the system's reason; a file that should be there and is not is the caller's matter (`exists`),
// since only the caller knows whether data, a checkpoint or a configuration is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quell::files {

bool exists(const std::string& path);
bool is_folder(const std::string& path);
bool is_link(const std::string& path);
uint64_t size(const std::string& path);
int64_t modified(const std::string& path);                 // when it was last written: nanoseconds since 1970
std::vector<std::string> list(const std::string& folder);  // names, sorted
uint64_t free_bytes(const std::string& folder);            // that its file system has left for this user
void forget_cached(const std::string& path);               // so that what is read next comes from the disk
void truncate(const std::string& path, uint64_t bytes);    // to its first `bytes`, and synced
void make_folders(const std::string& path);                // like mkdir -p
// Makes `path` itself and fails where it is there already: returns false then. Parents are made.
bool make_new_folder(const std::string& path);

// Whole file; `limit` bytes at most (an error above it), so that no input can fill the memory.
std::string read(const std::string& path, uint64_t limit = UINT64_MAX);

// Hands `size` bytes from `begin` on over in pieces, by read(): a disk that cannot deliver them is an error, where a mapping would end
// the process. Fewer bytes than that are one too.
void read_pieces(const std::string& path, uint64_t begin, uint64_t size, const std::function<void(std::string_view)>& take);

// Gives a file or folder a name that must be free (false where it is taken), then fsyncs the folder that holds it.
bool rename_new(const std::string& from, const std::string& to);
// After this returns, what was made, renamed or removed in the folder stays so.
void sync_folder(const std::string& folder);
// A file, or a folder with all that is in it; links are removed, not followed. What is not there is no error.
void remove_all(const std::string& path);

// Temporary name beside it, write, fsync, rename over, fsync of the folder: after a crash the old or the new file is
// there, never a part of one. An error before the rename leaves the old file; one of the last fsync leaves the new file
// in place.
void write_atomically(const std::string& path, std::string_view bytes);

// A file that is written once from front to back, in pieces. `beside`: under a temporary name, and it appears under its own on
// commit(), over what was there. `in_place`: under its own from the start, which must be free, in a folder that itself appears
// later; its name is synced with that folder.
class Output {
 public:
  enum class Way { beside, in_place };
  explicit Output(std::string path, Way way = Way::beside);
  ~Output();  // without commit(): what was written is removed
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  void write(const void* bytes, size_t count);
  void commit();  // fsync, and beside: rename, fsync of the folder

 private:
  std::string path_, temporary_;
  int descriptor_ = -1;
};

// Appends lines; each write is one system call, so that a killed process leaves whole lines (metrics.jsonl).
class Appender {
 public:
  explicit Appender(const std::string& path);
  ~Appender();
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;
  void write_line(std::string_view line);
  void sync();  // what was written so far stays, whatever happens to the machine
  uint64_t size() const;  // of the file, also where its name was taken away meanwhile

 private:
  std::string path_;
  int descriptor_ = -1;
};

// A whole file mapped read-only. Movable.
class Mapping {
 public:
  Mapping() = default;
  explicit Mapping(const std::string& path);
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // What is at `path` now, where it is still the file that is mapped; nothing where another has its name, or none.
  // How many bytes it has:
  std::optional<uint64_t> size_at(const std::string& path) const;
  // Hands bytes over as files::read_pieces() does, and tells how many: fewer than `size` where the file was cut off.
  std::optional<uint64_t> read_pieces_at(const std::string& path, uint64_t begin, uint64_t size,
                                         const std::function<void(std::string_view)>& take) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  uint64_t device_ = 0, inode_ = 0;  // not a descriptor: a set may have more files than a process may open
};

// The seam for tests: called before each operation that changes the disk with its name ("open", "write", "fsync",
// "rename", "mkdir", "unlink") and path; returns 0 to go on, an errno to fail with, or below 0 for a write that takes half.
using Faults = std::function<int(const char* operation, const std::string& path)>;
void set_faults(Faults faults);  // an empty function switches it off

}  // namespace quell::files
