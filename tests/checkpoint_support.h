// What the checkpoint tests share: files from literal bytes, and the message of the error that reading one gives.
#pragma once

#include <cstring>
#include <fstream>
#include <string>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "support.h"

namespace quell::testing {

inline std::string with_length(const std::string& header) {
  const uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header;
}

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// What a CheckpointError from `function` says, without the folder; "" where nothing is thrown.
template <class Function>
std::string checkpoint_error(const TemporaryFolder& folder, Function function) {
  try {
    function();
  } catch (const CheckpointError& error) {
    std::string message = error.what();
    const std::string prefix = folder / "";
    for (size_t at = message.find(prefix); at != std::string::npos; at = message.find(prefix)) {
      message.erase(at, prefix.size());
    }
    return message;
  }
  return "";
}

}  // namespace quell::testing
