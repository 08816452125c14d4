// Reading is strict in layers: the text's own digest first, so that a damaged one is called damaged, then JSON without duplicate
// names, then every field with its kind.
#include "checkpoint/manifest.h"

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace quell {
namespace {

constexpr std::string_view seal_begin = ",\"digest\":\"", seal_end = "\"}\n";
constexpr size_t digest_digits = 32;

// One object of the manifest: takes every field once, and at the end none may be left.
class Fields {
 public:
  Fields(const Json& object, const std::string& where) : object_(object), where_(where) {
    if (!object.is_object()) fail("is not an object");
  }
  std::string text(const char* name) { return take(name, &Json::is_string, "a text").get<std::string>(); }
  int64_t count(const char* name) { return whole(take(name, &Json::is_number_unsigned, "a whole number from 0 up"), name); }
  uint64_t size(const char* name) { return static_cast<uint64_t>(count(name)); }
  const Json& array(const char* name) { return take(name, &Json::is_array, "a list"); }
  const Json& object(const char* name) { return take(name, &Json::is_object, "an object"); }
  std::string digest(const char* name) {
    const std::string digits = text(name);
    if (digits.size() != digest_digits || digits.find_first_not_of("0123456789abcdef") != std::string::npos) fail(cat(name, " is no digest"));
    return digits;
  }
  std::map<std::string, int64_t> integers(const char* name) {
    std::map<std::string, int64_t> all;
    for (const auto& [key, value] : object(name).items()) {
      if (!value.is_number_integer()) fail(cat(name, ".", key, " is no whole number"));
      all[key] = whole(value, key);
    }
    return all;
  }
  std::map<std::string, double> numbers(const char* name) {
    std::map<std::string, double> all;
    for (const auto& [key, value] : object(name).items()) {
      if (!value.is_number()) fail(cat(name, ".", key, " is no number"));
      all[key] = value.get<double>();
    }
    return all;
  }
  std::vector<int64_t> shape(const char* name) {
    std::vector<int64_t> sizes;
    for (const Json& size : array(name)) {
      if (!size.is_number_unsigned()) fail(cat(name, " holds other than whole numbers from 0 up"));
      sizes.push_back(whole(size, name));
    }
    return sizes;
  }
  void end() const {
    for (const auto& [name, value] : object_.items()) {
      if (!taken_.contains(name)) fail("has the unknown field " + name);
    }
  }
  [[noreturn]] void fail(const std::string& what) const { throw CheckpointError(cat(where_, " ", what)); }

 private:
  const Json& take(const char* name, bool (Json::*is)() const noexcept, const char* kind) {
    if (!object_.contains(name)) fail(cat("has no field ", name));
    taken_.insert(name);
    const Json& value = object_[name];
    if (!(value.*is)()) fail(cat(name, " is not ", kind));
    return value;
  }
  int64_t whole(const Json& value, const std::string& name) const {
    if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) fail(name + " is too large");
    return value.get<int64_t>();
  }

  const Json& object_;
  std::string where_;
  std::set<std::string> taken_;
};

ManifestFile file_of(const Json& json, const std::string& path) {
  Fields fields(json, path + ": an entry of files");
  ManifestFile file{fields.text("name"), fields.size("bytes"), fields.digest("header"), {}};
  if (file.name.empty() || file.name.find('/') != std::string::npos || file.name.starts_with('.')) fields.fail("is no plain file name");
  for (const Json& entry : fields.array("tensors")) {
    Fields tensor(entry, cat(path, ": a tensor of ", file.name));
    file.tensors.push_back({tensor.text("name"), tensor.text("type"), tensor.shape("shape"), tensor.digest("digest")});
    tensor.end();
  }
  fields.end();
  return file;
}

Json json_of(const ManifestFile& file) {
  Json tensors = Json::array();
  for (const ManifestTensor& t : file.tensors) tensors.push_back({{"name", t.name}, {"type", t.type}, {"shape", t.shape}, {"digest", t.digest}});
  return {{"name", file.name}, {"bytes", file.bytes}, {"header", file.header}, {"tensors", tensors}};
}

// What stands before the seal, without its last brace; throws where the seal is not that of the text.
std::string_view sealed(std::string_view text, const std::string& path) {
  const size_t seal = seal_begin.size() + digest_digits + seal_end.size();
  const bool has_one = text.size() > seal && text.ends_with(seal_end) && text.substr(text.size() - seal).starts_with(seal_begin);
  if (!has_one) throw CheckpointError(path + ": does not end with its digest: it is cut short, or not one of ours");
  const std::string_view body = text.substr(0, text.size() - seal);
  if (text.substr(body.size() + seal_begin.size(), digest_digits) != xxh3_128_hex(body)) {
    throw CheckpointError(path + ": is damaged: its digest is not that of its text");
  }
  return body;
}

}  // namespace

std::string Manifest::content_digest() const {
  std::string all = cat(step, "\n");
  for (const ManifestFile& file : files) {
    for (const ManifestTensor& tensor : file.tensors) all += cat(file.name, " ", tensor.name, " ", tensor.type, " ", tensor.digest, "\n");
  }
  return xxh3_128_hex(all);
}

uint64_t Manifest::bytes() const {
  uint64_t sum = 0;
  for (const ManifestFile& file : files) sum += file.bytes;
  return sum;
}

std::string manifest_text(const Manifest& m) {
  for (const auto& [name, value] : m.numbers) require(std::isfinite(value), ("manifest: " + name + " is not finite").c_str());
  Json json{{"format", checkpoint_format}, {"step", m.step}, {"save", m.save}, {"run", m.run}, {"quell", m.quell}, {"libtorch", m.libtorch}, {"world", m.world}};
  json["config"] = m.config;
  json["data"] = m.data;
  json["integers"] = m.integers;
  json["numbers"] = m.numbers;
  json["metrics"] = m.metrics;
  json["files"] = Json::array();
  for (const ManifestFile& file : m.files) json["files"].push_back(json_of(file));
  std::string body = json.dump();
  body.pop_back();
  return cat(body, seal_begin, xxh3_128_hex(body), seal_end);
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  Json json;
  try {
    json = parse_json(cat(sealed(text, path), "}"), path);
  } catch (const DataError& problem) {
    throw CheckpointError(problem.what());
  }
  Fields fields(json, path + ":");
  const int64_t format = fields.count("format");
  if (format > checkpoint_format || format < 1) {
    fields.fail(cat("has format ", format, "; this version of quell reads formats 1 to ", checkpoint_format));
  }
  Manifest m{fields.count("step"), fields.digest("save"), fields.digest("run"), fields.text("config"), fields.text("quell"), fields.text("libtorch"),
             fields.count("world"), fields.object("data"), fields.integers("integers"), fields.numbers("numbers"), fields.numbers("metrics"), {}};
  std::set<std::string> names;
  for (const Json& file : fields.array("files")) {
    m.files.push_back(file_of(file, path));
    if (!names.insert(m.files.back().name).second) fields.fail("names the file " + m.files.back().name + " twice");
  }
  fields.end();
  return m;
}

}  // namespace quell
