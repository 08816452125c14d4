// Reading by a mapping and one copy a tensor; writing in one pass. What a header may say is header.cpp's matter.
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "checkpoint/header.h"

namespace quell {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and is copied as it is");

namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

NamedTensors widest_first(NamedTensors tensors) {
  const auto wider = [](const auto& a, const auto& b) { return a.second.element_size() > b.second.element_size(); };
  std::stable_sort(tensors.begin(), tensors.end(), wider);
  return tensors;
}

// What else a file may be that a user takes for weights.
std::string other_format(std::string_view bytes) {
  const bool pickled = bytes.starts_with("PK\x03\x04") || bytes.starts_with("\x80\x02");
  if (!pickled) return "";
  return "; it looks like a PyTorch pickle, which is never read: save it from Python with safetensors.torch.save_file";
}

Header read_header(std::string_view bytes, const std::string& path) {
  if (bytes.size() < 8) {
    throw CheckpointError(cat(path, ": ", bytes.size(), " bytes are too few for a safetensors file: it is cut short"));
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (length > largest_header) {
    throw CheckpointError(cat(path, ": a header of ", length, " bytes (at most ", largest_header,
                              "): this is no safetensors file", other_format(bytes)));
  }
  if (length > bytes.size() - 8) {
    throw CheckpointError(cat(path, ": the header has ", length, " bytes, but only ", bytes.size() - 8,
                              " follow its length: the file is cut short"));
  }
  return parse_header(bytes.substr(8, length), bytes.size() - 8 - length, path);
}

}  // namespace

void write_safetensors(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors,
                       const Metadata& metadata) {
  const auto sorted = widest_first(tensors);
  std::vector<StoredTensor> entries;
  for (const auto& [name, tensor] : sorted) entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  const std::string head = head_of(entries, metadata);
  files::Output file(path);
  file.write(head.data(), head.size());
  for (const auto& [name, tensor] : sorted) {
    const at::Tensor plain = tensor.detach().to(at::kCPU).contiguous();
    if (plain.nbytes() > 0) file.write(plain.const_data_ptr(), plain.nbytes());
  }
  file.commit();
}

struct SafetensorsFile::Contents {
  std::string path;
  files::Mapping mapping;
  std::string_view head, data;  // up to the first tensor, and from there
  Header header;

  const StoredTensor* find(const std::string& name) const {
    const auto& all = header.tensors;
    const auto before = [](const StoredTensor& tensor, const std::string& other) { return tensor.name < other; };
    const auto found = std::lower_bound(all.begin(), all.end(), name, before);
    return found != all.end() && found->name == name ? &*found : nullptr;
  }
  const StoredTensor& at(const std::string& name) const {
    const StoredTensor* found = find(name);
    if (!found) throw CheckpointError(cat(path, ": there is no tensor ", name));
    return *found;
  }
};

SafetensorsFile::SafetensorsFile(const std::string& path) : contents_(std::make_unique<Contents>()) {
  if (!files::exists(path)) throw CheckpointError(path + ": there is no such file");
  if (files::is_folder(path)) throw CheckpointError(path + ": is a folder, not a safetensors file");
  contents_->path = path;
  contents_->mapping = files::Mapping(path);
  const auto bytes = contents_->mapping.bytes();
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  contents_->header = read_header(all, path);
  const auto& tensors = contents_->header.tensors;
  uint64_t data_bytes = 0;
  for (const StoredTensor& tensor : tensors) data_bytes = std::max(data_bytes, tensor.end);
  contents_->data = all.substr(all.size() - data_bytes);
  contents_->head = all.substr(0, all.size() - data_bytes);
}

SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : contents_->header.tensors) names.push_back(tensor.name);
  return names;
}

bool SafetensorsFile::has(const std::string& name) const { return contents_->find(name) != nullptr; }

std::vector<int64_t> SafetensorsFile::shape(const std::string& name) const { return contents_->at(name).shape; }

at::ScalarType SafetensorsFile::type(const std::string& name) const { return contents_->at(name).type; }

const Metadata& SafetensorsFile::metadata() const { return contents_->header.metadata; }

std::string_view SafetensorsFile::head() const { return contents_->head; }

uint64_t SafetensorsFile::size() const { return contents_->head.size() + contents_->data.size(); }

std::pair<uint64_t, uint64_t> SafetensorsFile::place(const std::string& name) const {
  const StoredTensor& stored = contents_->at(name);
  return {contents_->head.size() + stored.begin, stored.end - stored.begin};
}

at::Tensor SafetensorsFile::view(const std::string& name) const {
  const StoredTensor& stored = contents_->at(name);
  // LibTorch knows no tensor that cannot be written; the mapping is read-only, so a write would end the process.
  return at::from_blob(const_cast<char*>(contents_->data.data() + stored.begin), stored.shape, at::TensorOptions().dtype(stored.type));
}

at::Tensor SafetensorsFile::read(const std::string& name) const {
  const StoredTensor& stored = contents_->at(name);
  const std::string_view bytes = contents_->data.substr(stored.begin, stored.end - stored.begin);
  if (stored.type == at::kBool && std::any_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b > 1; })) {
    throw CheckpointError(cat(contents_->path, ": tensor ", name, ": BOOL holds bytes other than 0 and 1"));
  }
  at::Tensor tensor = at::empty(stored.shape, stored.type);
  if (!bytes.empty()) std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace quell
