// nlohmann's parser reads the JSON and reports what it meets; a small state machine here knows what may come next and
// refuses the rest at once, so that a hostile header is never built up in memory first.
#include "checkpoint/header.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace quell {

namespace {

struct StoredType {
  const char* name;
  at::ScalarType type;
};
constexpr StoredType stored_types[] = {{"F64", at::kDouble},    {"F32", at::kFloat}, {"F16", at::kHalf},
                                       {"BF16", at::kBFloat16}, {"I64", at::kLong},  {"I32", at::kInt},
                                       {"I16", at::kShort},     {"I8", at::kChar},   {"U8", at::kByte},
                                       {"BOOL", at::kBool}};

const StoredType* type_named(const std::string& name) {
  for (const StoredType& each : stored_types) {
    if (name == each.name) return &each;
  }
  return nullptr;
}

constexpr size_t longest_name = 512, most_tensors = 1'000'000, most_dimensions = 64;
constexpr uint64_t largest_dimension = uint64_t{1} << 48, largest_metadata = uint64_t{1} << 20;

// For messages: escaped, and never longer than a line.
std::string quoted(const std::string& text) {
  const std::string all = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  return all.size() <= 80 ? all : all.substr(0, 76) + "...\"";
}

bool has_control_character(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}
  Header take() { return std::move(header_); }

  bool start_object(size_t) {
    switch (at_) {
      case At::start: return go(At::names);
      case At::tensor: return go(At::fields);
      case At::metadata: return go(At::metadata_names);
      default: wrong("an object");
    }
  }
  bool key(std::string& name) {
    if (at_ == At::names) return name == "__metadata__" ? begin_metadata() : begin_tensor(name);
    if (at_ == At::fields) return begin_field(name);
    metadata_bytes_ += name.size();
    if (header_.metadata.contains(name)) fail(cat("__metadata__: ", quoted(name), " stands twice"));
    field_ = name;
    return go(At::metadata_value);
  }
  bool string(std::string& value) {
    if (at_ == At::metadata_value) {
      metadata_bytes_ += value.size();
      if (metadata_bytes_ > largest_metadata) fail(cat("__metadata__ is larger than ", largest_metadata, " bytes"));
      header_.metadata[field_] = value;
      return go(At::metadata_names);
    }
    if (at_ != At::type) wrong("a string");
    const StoredType* found = type_named(value);
    if (!found) {
      fail(cat(subject(), "dtype ", quoted(value), " is not one of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL"));
    }
    tensor().type = found->type;
    return go(At::fields);
  }
  bool start_array(size_t) {
    if (at_ == At::shape) return go(At::dimensions);
    if (at_ == At::offsets) return go(At::two_offsets);
    wrong("an array");
  }
  bool number_unsigned(uint64_t value) {
    if (at_ == At::dimensions) {
      if (value > largest_dimension) fail(cat(subject(), "shape: ", value, " is too large (at most 2^48)"));
      if (tensor().shape.size() == most_dimensions) fail(cat(subject(), "more than ", most_dimensions, " dimensions"));
      tensor().shape.push_back(static_cast<int64_t>(value));
    } else if (at_ == At::two_offsets && offsets_ < 2) {
      (offsets_++ == 0 ? tensor().begin : tensor().end) = value;
    } else {
      wrong("a number");
    }
    return true;
  }
  bool end_array() {
    if (at_ == At::two_offsets && offsets_ != 2) wrong("an array of another length");
    return go(At::fields);
  }
  bool end_object() {
    if (at_ != At::fields) return go(at_ == At::names ? At::end : At::names);
    if (!seen_type_) fail(cat(subject(), "has no dtype"));
    if (!seen_shape_) fail(cat(subject(), "has no shape"));
    if (!seen_offsets_) fail(cat(subject(), "has no data_offsets"));
    return go(At::names);
  }
  bool number_integer(int64_t) { wrong("a number below 0"); }
  bool number_float(double, const std::string& written) { wrong(cat("the number ", written.substr(0, 40))); }
  bool boolean(bool) { wrong("true or false"); }
  bool null() { wrong("null"); }
  bool binary(Json::binary_t&) { wrong("binary data"); }
  template <class Problem>
  bool parse_error(size_t byte, const std::string&, const Problem&) {
    fail(cat("the header is not valid JSON at its byte ", byte));
  }

 private:
  enum class At {
    start, names, end,                          // of the header's own object
    metadata, metadata_names, metadata_value,
    tensor, fields, type, shape, dimensions, offsets, two_offsets
  };

  bool go(At next) {
    at_ = next;
    return true;
  }
  StoredTensor& tensor() { return header_.tensors.back(); }
  std::string subject() { return cat("tensor ", quoted(tensor().name), ": "); }
  [[noreturn]] void fail(const std::string& message) const { throw CheckpointError(cat(path_, ": ", message)); }

  [[noreturn]] void wrong(const std::string& found) {
    switch (at_) {
      case At::metadata: fail(cat("__metadata__ must be an object, not ", found));
      case At::metadata_value: fail(cat("__metadata__: ", quoted(field_), " must be a string, not ", found));
      case At::tensor: fail(cat(subject(), "must be an object with dtype, shape and data_offsets, not ", found));
      case At::type: fail(cat(subject(), "dtype must be a string, not ", found));
      case At::shape: fail(cat(subject(), "shape must be an array of whole numbers, not ", found));
      case At::dimensions: fail(cat(subject(), "shape must hold whole numbers, not ", found));
      case At::offsets:
      case At::two_offsets: fail(cat(subject(), "data_offsets must be an array of two whole numbers, not ", found));
      default: fail(cat("the header must be an object of tensors, not ", found));
    }
  }

  bool begin_metadata() {
    if (std::exchange(seen_metadata_, true)) fail("__metadata__ stands twice");
    return go(At::metadata);
  }
  bool begin_tensor(const std::string& name) {
    if (name.size() > longest_name) fail(cat("a name of ", name.size(), " bytes (at most ", longest_name, ")"));
    if (has_control_character(name)) fail(cat("tensor ", quoted(name), ": control characters in a name"));
    if (header_.tensors.size() == most_tensors) fail(cat("more than ", most_tensors, " tensors"));
    header_.tensors.push_back({name, at::kFloat, {}, 0, 0});
    seen_type_ = seen_shape_ = seen_offsets_ = false;
    offsets_ = 0;
    return go(At::tensor);
  }
  bool begin_field(const std::string& name) {
    bool* seen = nullptr;
    if (name == "dtype") seen = &seen_type_;
    if (name == "shape") seen = &seen_shape_;
    if (name == "data_offsets") seen = &seen_offsets_;
    if (!seen) fail(cat(subject(), "unknown field ", quoted(name)));
    if (std::exchange(*seen, true)) fail(cat(subject(), name, " stands twice"));
    return go(seen == &seen_type_ ? At::type : seen == &seen_shape_ ? At::shape : At::offsets);
  }

  const std::string& path_;
  Header header_;
  At at_ = At::start;
  std::string field_;  // of __metadata__
  uint64_t metadata_bytes_ = 0;
  bool seen_metadata_ = false, seen_type_ = false, seen_shape_ = false, seen_offsets_ = false;
  int offsets_ = 0;
};

// Bytes that the shape needs. Zeros do not hide the other sizes: their product is a stride somewhere later.
std::optional<uint64_t> bytes_of(const StoredTensor& tensor) {
  uint64_t bytes = c10::elementSize(tensor.type);
  bool empty = false;
  for (const int64_t size : tensor.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(std::max<int64_t>(size, 1)), &bytes) || bytes > INT64_MAX) {
      return std::nullopt;
    }
  }
  return empty ? 0 : bytes;
}

// Every byte of the data belongs to exactly one tensor.
void check_layout(const std::vector<StoredTensor>& tensors, uint64_t data_bytes, const std::string& path) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  const auto place = [](const StoredTensor* tensor) { return std::pair(tensor->begin, tensor->end); };
  std::sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return place(a) < place(b); });
  uint64_t position = 0;
  for (const StoredTensor* tensor : order) {
    const auto [begin, end] = place(tensor);
    const auto fail = [&, first = begin, last = end](const std::string& message) {
      const std::string offsets = cat("data_offsets [", first, ", ", last, "] ");
      throw CheckpointError(cat(path, ": tensor ", quoted(tensor->name), ": ", offsets, message));
    };
    if (end < begin) fail("end before they begin");
    if (end > data_bytes) fail(cat("reach beyond the ", data_bytes, " bytes of data: the file is cut short"));
    const std::optional<uint64_t> needed = bytes_of(*tensor);
    if (!needed) fail("cannot hold its shape, which is too large for any memory");
    if (end - begin != *needed) fail(cat("hold ", end - begin, " bytes, its shape and dtype need ", *needed));
    if (begin < position) fail(cat("overlap what ends at byte ", position));
    if (begin > position) fail(cat("leave a hole after byte ", position));
    position = end;
  }
  if (position != data_bytes) {
    throw CheckpointError(cat(path, ": ", data_bytes - position, " bytes after the last tensor belong to none"));
  }
}

}  // namespace

Header parse_header(std::string_view text, uint64_t data_bytes, const std::string& path) {
  // The parser would take a byte order mark; writers may pad in front, as behind.
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] != '{') {
    throw CheckpointError(cat(path, ": the header does not begin with {: this is no safetensors file"));
  }
  // The parser takes a zero byte for the end of the text, which would hide what follows it.
  if (const size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw CheckpointError(cat(path, ": the header is not valid JSON at its byte ", zero + 1));
  }
  Reader reader(path);
  Json::sax_parse(text.begin(), text.end(), &reader);
  Header header = reader.take();
  const auto by_name = [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; };
  std::sort(header.tensors.begin(), header.tensors.end(), by_name);
  for (size_t i = 1; i < header.tensors.size(); ++i) {
    if (header.tensors[i].name != header.tensors[i - 1].name) continue;
    throw CheckpointError(cat(path, ": tensor ", quoted(header.tensors[i].name), " stands twice"));
  }
  check_layout(header.tensors, data_bytes, path);
  return header;
}

const char* stored_name(at::ScalarType type) {
  for (const StoredType& each : stored_types) {
    if (type == each.type) return each.name;
  }
  throw Bug(cat("type ", type, " has no name in safetensors"));
}

std::string head_of(std::vector<StoredTensor>& tensors, const Metadata& metadata) {
  uint64_t position = 0;
  for (StoredTensor& tensor : tensors) {
    tensor.begin = position;
    tensor.end = position += bytes_of(tensor).value();
  }
  for (const auto& [key, value] : metadata) {
    require(is_utf8(key) && is_utf8(value), "safetensors: metadata that is not UTF-8");
  }
  for (const StoredTensor& tensor : tensors) require(is_utf8(tensor.name), "safetensors: a name that is not UTF-8");
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + Json(metadata).dump() + ",";
  for (const StoredTensor& tensor : tensors) {
    text += cat(Json(tensor.name).dump(), ":{\"dtype\":\"", stored_name(tensor.type), "\",\"shape\":",
                Json(tensor.shape).dump(), ",\"data_offsets\":[", tensor.begin, ",", tensor.end, "]},");
  }
  if (text.back() == ',') text.pop_back();
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  try {
    parse_header(text, tensors.empty() ? 0 : tensors.back().end, "what is to be written");
  } catch (const CheckpointError& error) {
    throw Bug(error.what());
  }
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

}  // namespace quell
