// Round trips through files, and files that are cut short or have a bit flipped.
#include <limits>
#include <set>

#include "base/files.h"
#include "checkpoint_support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;

namespace {

constexpr at::ScalarType all_types[] = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                                        at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

NamedTensors some_of_every_type() {
  NamedTensors tensors;
  for (const at::ScalarType type : all_types) {
    const at::Tensor values = testing::random_tensor({3, 5}, static_cast<uint64_t>(type), at::kDouble, 50).abs();
    tensors.emplace_back(std::string("of ") + c10::toString(type), values.to(type));
  }
  return tensors;
}

at::Tensor bits_of(const at::Tensor& tensor) { return tensor.contiguous().view({-1}).view(at::kByte); }

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && at::equal(bits_of(a), bits_of(b));
}

}  // namespace

TEST_CASE("tensors of every type come back with their shape, type and bits", "[unit]") {
  const testing::TemporaryFolder folder;
  const NamedTensors tensors = some_of_every_type();
  const Metadata metadata{{"config", "model:\n  width: 4\n"}, {"quote \" and \xC3\xA9", "\t"}};
  write_safetensors(folder / "x", tensors, metadata);
  const SafetensorsFile file(folder / "x");
  CHECK(file.metadata() == metadata);
  CHECK(file.names().size() == tensors.size());
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    REQUIRE(file.has(name));
    CHECK(file.shape(name) == tensor.sizes().vec());
    CHECK(file.type(name) == tensor.scalar_type());
    CHECK(same(file.read(name), tensor));
  }
  CHECK_FALSE(file.has("absent"));
}

TEST_CASE("views, scalars, empty tensors, leaves and special values are written as what they show", "[unit]") {
  const testing::TemporaryFolder folder;
  const at::Tensor base = testing::random_tensor({6, 8}, 1);
  const double infinity = std::numeric_limits<double>::infinity();
  const NamedTensors tensors{{"transposed", base.t()},
                             {"part", base.narrow(1, 2, 3)},
                             {"expanded", base.select(0, 1).expand({4, 8})},
                             {"scalar", at::scalar_tensor(2.5, at::kDouble)},
                             {"empty", at::zeros({0, 7}, at::kInt)},
                             {"leaf", base.clone().requires_grad_(true)},
                             {"special", at::tensor({-infinity, infinity, std::nan(""), -0.0, 5e-324}, at::kDouble)}};
  write_safetensors(folder / "x", tensors);
  const SafetensorsFile file(folder / "x");
  for (const auto& [name, tensor] : tensors) {
    INFO(name);
    CHECK(same(file.read(name), tensor.detach()));
  }
}

TEST_CASE("the written layout is the format's: length, padded header, aligned data", "[unit]") {
  const testing::TemporaryFolder folder;
  const NamedTensors tensors{{"small", at::ones({3}, at::kByte)}, {"large", at::ones({1}, at::kDouble)}};
  write_safetensors(folder / "x", tensors, {{"k", "v"}});
  const std::string header =
      "{\"__metadata__\":{\"k\":\"v\"},\"large\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,8]},"
      "\"small\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string data("\0\0\0\0\0\0\xF0\x3F\x01\x01\x01", 11);
  CHECK(testing::bytes_of(folder / "x") == testing::with_length(padded) + data);
}

TEST_CASE("what the reader would refuse is not written, and an old file stays", "[unit]") {
  const testing::TemporaryFolder folder;
  const at::Tensor tensor = at::zeros({2});
  write_safetensors(folder / "x", {{"old", tensor}});
  const std::string before = testing::bytes_of(folder / "x");
  CHECK_THROWS_AS(write_safetensors(folder / "x", {{"a", tensor}, {"a", tensor}}), Bug);
  CHECK_THROWS_AS(write_safetensors(folder / "x", {{"a\n", tensor}}), Bug);
  CHECK_THROWS_AS(write_safetensors(folder / "x", {{std::string(513, 'a'), tensor}}), Bug);
  CHECK_THROWS_AS(write_safetensors(folder / "x", {{"__metadata__", tensor}}), Bug);
  CHECK_THROWS_AS(write_safetensors(folder / "x", {{"a", tensor.to(at::kComplexFloat)}}), Bug);
  CHECK_THROWS_AS(write_safetensors(folder / "x", {{"a\xFF", tensor}}), Bug);
  CHECK_THROWS_AS(write_safetensors(folder / "x", {}, {{"k", "\xFF"}}), Bug);
  CHECK_THROWS_AS(write_safetensors(folder / "x", {}, {{"k", std::string(1 << 20, 'v')}}), Bug);
  CHECK(testing::bytes_of(folder / "x") == before);
}

TEST_CASE("a write that the disk refuses leaves the old file and nothing else", "[unit]") {
  const testing::TemporaryFolder folder;
  write_safetensors(folder / "x", {{"a", at::zeros({2})}});
  const std::string before = testing::bytes_of(folder / "x");
  for (int failing = 0, operations = 1; failing < operations; ++failing) {
    operations = 0;
    files::set_faults([&](const char* operation, const std::string&) {
      return std::string(operation) != "unlink" && operations++ == failing ? ENOSPC : 0;
    });
    bool failed = false;
    try {
      write_safetensors(folder / "x", {{"a", at::ones({2})}});
    } catch (const MachineError&) {
      failed = true;
    }
    files::set_faults({});
    if (failing == operations) CHECK_FALSE(failed);
    if (failed && testing::bytes_of(folder / "x") != before) {
      // Only the folder's own fsync comes after the rename.
      CHECK(SafetensorsFile(folder / "x").read("a").eq(1).all().item<bool>());
    }
    CHECK(files::list(folder.path()) == std::vector<std::string>{"x"});
  }
}

TEST_CASE("reading what is not there or not of its type is an error that names it", "[unit]") {
  const testing::TemporaryFolder folder;
  write_safetensors(folder / "x", {{"flag", at::ones({2}, at::kBool)}});
  const auto read = [&](const char* name) { SafetensorsFile(folder / "x").read(name); };
  CHECK(testing::checkpoint_error(folder, [&] { read("absent"); }) == "x: there is no tensor absent");
  std::string bytes = testing::bytes_of(folder / "x");
  bytes.back() = 2;
  testing::write_bytes(folder / "x", bytes);
  CHECK(testing::checkpoint_error(folder, [&] { read("flag"); }) ==
        "x: tensor flag: BOOL holds bytes other than 0 and 1");
}

TEST_CASE("a file cut short at any byte is refused", "[unit]") {
  const testing::TemporaryFolder folder;
  write_safetensors(folder / "whole", some_of_every_type(), {{"key", "value"}});
  const std::string bytes = testing::bytes_of(folder / "whole");
  for (size_t length = 0; length < bytes.size(); ++length) {
    testing::write_bytes(folder / "x", bytes.substr(0, length));
    INFO(length);
    REQUIRE_THROWS_AS(SafetensorsFile(folder / "x"), CheckpointError);
  }
  testing::write_bytes(folder / "x", bytes + '\0');
  CHECK_THROWS_AS(SafetensorsFile(folder / "x"), CheckpointError);
}

TEST_CASE("a file with any bit of its header flipped is refused or gives tensors of the same shapes", "[unit]") {
  const testing::TemporaryFolder folder;
  write_safetensors(folder / "whole", {{"a.weight", testing::random_tensor({2, 3}, 1)},
                                       {"b", testing::random_tensor({10}, 2, at::kBFloat16)},
                                       {"c", at::ones({4}, at::kBool)}}, {{"key", "value"}});
  const std::string bytes = testing::bytes_of(folder / "whole");
  const size_t header_end = bytes.size() - (24 + 20 + 4);
  int refused = 0, read = 0;
  for (size_t bit = 0; bit < 8 * header_end; ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    testing::write_bytes(folder / "x", flipped);
    INFO("bit " << bit);
    try {
      const SafetensorsFile file(folder / "x");
      std::multiset<std::vector<int64_t>> shapes;
      for (const std::string& name : file.names()) shapes.insert(file.read(name).sizes().vec());
      REQUIRE(shapes == std::multiset<std::vector<int64_t>>{{2, 3}, {10}, {4}});
      ++read;
    } catch (const CheckpointError&) {
      ++refused;
    }
  }
  CHECK(refused > 0);
  CHECK(read > 0);  // a changed letter of a name or of the metadata
}

TEST_CASE("a hostile header costs no more memory than it is long", "[unit]") {
  // A few bytes that claim the most; were they believed before being compared with the file, this would not return.
  const testing::TemporaryFolder folder;
  testing::write_bytes(folder / "x", testing::with_length("{\"a\":{\"dtype\":\"F64\",\"shape\":[281474976710656],"
                                                          "\"data_offsets\":[0,2251799813685248]}}"));
  CHECK(testing::checkpoint_error(folder, [&] { SafetensorsFile(folder / "x"); }) ==
        "x: tensor \"a\": data_offsets [0, 2251799813685248] reach beyond the 0 bytes of data: the file is cut short");
}

TEST_CASE("a file stays readable after it was moved from one variable to another and replaced on disk", "[unit]") {
  const testing::TemporaryFolder folder;
  write_safetensors(folder / "x", {{"a", at::ones({1000})}});
  SafetensorsFile first(folder / "x");
  const SafetensorsFile second(std::move(first));
  write_safetensors(folder / "x", {{"b", at::zeros({1})}});
  CHECK(second.read("a").sum().item<float>() == 1000);
}
