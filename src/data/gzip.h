// Reads a file front to back, unpacking it where it is gzip (by content). Only what is asked for is unpacked, so the caller
// bounds the memory. Damaged or cut gzip data are DataError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace quell {

class Unpacking {
 public:
  explicit Unpacking(const std::string& path);  // a file that is not there is MachineError, as in base/files.h
  ~Unpacking();
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

  // Copies the next `count` bytes and returns how many there were: fewer only at the end.
  size_t read(uint8_t* out, size_t count);
  bool is_packed() const;
  int64_t position() const;    // of what is unpacked
  uint64_t most_left() const;  // an upper bound of what read() can still give

 private:
  struct State;
  size_t inflate_some(uint8_t* out, size_t count);
  std::unique_ptr<State> state_;
};

}  // namespace quell
