#include "checkpoint/staging.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

// The whole memory that a tensor is a view of, as bytes.
at::Tensor memory_of(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  return at::empty({0}, at::kByte).set_(storage, 0, {static_cast<int64_t>(storage.nbytes())}, {1});
}

StagedFile& file_named(std::vector<StagedFile>& files, const std::string& name) {
  if (files.empty() || files.back().name != name) files.push_back({name, {}});  // names come in order
  return files.back();
}

}  // namespace

std::vector<StagedFile> Staging::take(const State& state) {
  const at::NoGradGuard no_gradients;
  std::map<const void*, at::Tensor> kept;
  std::vector<StagedFile> files;
  for (const auto& [name, tensor] : state.tensors) {
    require(tensor.is_contiguous() && tensor.is_cpu(), "staging: a tensor is not contiguous on the CPU");
    const size_t dot = name.find('.');
    require(dot != std::string::npos, "staging: a tensor belongs to no file");
    const char* begin = static_cast<const char*>(tensor.storage().data());
    if (!kept.contains(begin)) {
      const at::Tensor original = memory_of(tensor);
      at::Tensor& copy = kept[begin];
      if (const auto found = copies_.find(begin); found != copies_.end() && found->second.numel() == original.numel()) copy = found->second;
      if (!copy.defined()) copy = at::empty_like(original);
      copy.copy_(original);
    }
    const char* staged = static_cast<const char*>(kept[begin].const_data_ptr()) + (static_cast<const char*>(tensor.const_data_ptr()) - begin);
    file_named(files, name.substr(0, dot) + ".safetensors")
        .tensors.push_back({name.substr(dot + 1), tensor.scalar_type(), tensor.sizes().vec(), staged, tensor.nbytes()});
  }
  copies_ = std::move(kept);
  return files;
}

uint64_t Staging::bytes() const {
  uint64_t sum = 0;
  for (const auto& [begin, copy] : copies_) sum += copy.nbytes();
  return sum;
}

}  // namespace quell
