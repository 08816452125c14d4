// The safetensors format: 8 bytes of header length, a JSON header, raw little-endian tensors. The reader trusts
// nothing: all of it is checked before any memory is sized by it. What is written loads with the `safetensors` Python
// package.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace quell {

using Metadata = std::map<std::string, std::string>;

// Atomically (base/files.h). Tensors of wider types come first, so that all are aligned, and otherwise in the order
// given; each is copied to the CPU and made contiguous while it is written. Throws Bug on what the reader would refuse:
// names that are equal, longer than 512 bytes or hold control characters, more than 1 MiB of metadata, other types than
// these: F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL.
void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                       const Metadata& metadata = {});

class SafetensorsFile {
 public:
  // Maps and validates. Throws CheckpointError that names the file and what is wrong with it.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;

  std::vector<std::string> names() const;  // sorted
  bool has(const std::string& name) const;
  // These throw CheckpointError where there is no such tensor.
  std::vector<int64_t> shape(const std::string& name) const;
  at::ScalarType type(const std::string& name) const;
  at::Tensor read(const std::string& name) const;  // a copy on the CPU
  at::Tensor view(const std::string& name) const;  // of the mapped file: read from it only, and only while this object lives
  std::pair<uint64_t, uint64_t> place(const std::string& name) const;  // in the file: where its bytes begin, and how many there are
  std::string_view head() const;  // the file up to its first tensor
  uint64_t size() const;          // of the file, in bytes
  const Metadata& metadata() const;

 private:
  struct Contents;
  std::unique_ptr<Contents> contents_;
};

}  // namespace quell
