// What the files of this room that call the system share: the seam by which tests make calls fail, errors with the system's reason,
// descriptors. No other room includes it.
#pragma once

#include <string>

namespace quell::files {

// Where the operation may go on: 0, or below 0 where a write is to take a part only. Otherwise an errno to fail with.
int fault(const char* operation, const std::string& path);

// True where the operation may go on; otherwise errno is set as a failing call sets it.
bool allowed(const char* operation, const std::string& path);

// MachineError "path: what: <errno in words>".
[[noreturn]] void fail(const std::string& path, const char* what);

std::string parent_of(const std::string& path);

// Closed at the end of the scope.
struct Descriptor {
  explicit Descriptor(int opened) : value(opened) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value;
};

}  // namespace quell::files
