// Every rule of the reader, each broken by a file of literal bytes, with the message that a user sees.
#include "base/files.h"
#include "base/text.h"
#include "checkpoint_support.h"

#include <catch2/catch.hpp>  // last: c10 has a CHECK of its own

using namespace quell;
using testing::with_length;

namespace {

struct Case {
  std::string header, data, message;
};

std::string message_of(const std::string& bytes) {
  const testing::TemporaryFolder folder;
  testing::write_bytes(folder / "x", bytes);
  return testing::checkpoint_error(folder, [&] { SafetensorsFile(folder / "x"); });
}

void expect(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    INFO(each.header.substr(0, 200));
    CHECK(message_of(with_length(each.header) + each.data) == each.message);
  }
}

std::string tensor(const std::string& name, const std::string& shape, int begin, int end, const char* type = "U8") {
  return cat("\"", name, "\":{\"dtype\":\"", type, "\",\"shape\":", shape, ",\"data_offsets\":[", begin, ",", end,
             "]}");
}

std::string object(const std::vector<std::string>& members) { return cat("{", join(members, ","), "}"); }

}  // namespace

TEST_CASE("files that are no safetensors files are refused before the header", "[unit]") {
  CHECK(message_of("") == "x: 0 bytes are too few for a safetensors file: it is cut short");
  CHECK(message_of("1234567") == "x: 7 bytes are too few for a safetensors file: it is cut short");
  CHECK(message_of(std::string("\x03\0\0\0\0\0\0\0{}", 10)) ==
        "x: the header has 3 bytes, but only 2 follow its length: the file is cut short");
  CHECK(message_of(std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}")) ==
        "x: a header of 18446744073709551615 bytes (at most 100000000): this is no safetensors file");
  CHECK(message_of(std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10)) ==
        "x: a header of 100000001 bytes (at most 100000000): this is no safetensors file");
  CHECK(message_of("PK\x03\x04 a zip archive") ==
        "x: a header of 8800140462016121680 bytes (at most 100000000): this is no safetensors file; it looks like a "
        "PyTorch pickle, which is never read: save it from Python with safetensors.torch.save_file");
  const testing::TemporaryFolder folder;
  CHECK(testing::checkpoint_error(folder, [&] { SafetensorsFile(folder / "absent"); }) ==
        "absent: there is no such file");
  files::make_folders(folder / "folder");
  CHECK(testing::checkpoint_error(folder, [&] { SafetensorsFile(folder / "folder"); }) ==
        "folder: is a folder, not a safetensors file");
}

TEST_CASE("a header that is not one strict JSON object is refused", "[unit]") {
  expect({{"", "", "x: the header does not begin with {: this is no safetensors file"},
          {"    ", "", "x: the header does not begin with {: this is no safetensors file"},
          {"[]", "", "x: the header does not begin with {: this is no safetensors file"},
          {"\xEF\xBB\xBF{}", "", "x: the header does not begin with {: this is no safetensors file"},
          {"{} {}", "", "x: the header is not valid JSON at its byte 4"},
          {std::string("{}\0{", 4), "", "x: the header is not valid JSON at its byte 3"},
          {"{\"a\":}", "", "x: the header is not valid JSON at its byte 6"},
          {"{\"a\":{\"dtype\":\"U8\",}}", "", "x: the header is not valid JSON at its byte 20"},
          {"{\"\xC3\x28\":{}}", "", "x: the header is not valid JSON at its byte 4"},
          {"{\"\\ud800\":{}}", "", "x: the header is not valid JSON at its byte 9"},
          {"{/* */}", "", "x: the header is not valid JSON at its byte 2"},
          {"{\"a\":NaN}", "", "x: the header is not valid JSON at its byte 6"}});
}

TEST_CASE("a tensor must be an object of exactly dtype, shape and data_offsets", "[unit]") {
  const std::string must = "x: tensor \"a\": must be an object with dtype, shape and data_offsets, not ";
  expect({{"{\"a\":1}", "", must + "a number"},
          {"{\"a\":-1}", "", must + "a number below 0"},
          {"{\"a\":1.5}", "", must + "the number 1.5"},
          {"{\"a\":null}", "", must + "null"},
          {"{\"a\":true}", "", must + "true or false"},
          {"{\"a\":\"U8\"}", "", must + "a string"},
          {"{\"a\":[]}", "", must + "an array"},
          {"{\"a\":{}}", "", "x: tensor \"a\": has no dtype"},
          {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", "", "x: tensor \"a\": has no shape"},
          {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", "", "x: tensor \"a\": has no data_offsets"},
          {"{\"a\":{\"dtype\":\"U8\",\"stride\":[1]}}", "", "x: tensor \"a\": unknown field \"stride\""},
          {"{\"a\":{\"shape\":[],\"shape\":[]}}", "", "x: tensor \"a\": shape stands twice"},
          {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "", "x: tensor \"a\": dtype stands twice"},
          {"{\"a\":{\"data_offsets\":[0,0],\"data_offsets\":[0,0]}}", "",
           "x: tensor \"a\": data_offsets stands twice"}});
}

TEST_CASE("an unknown dtype is refused by name", "[unit]") {
  const std::string known = " is not one of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL";
  expect({{object({tensor("a", "[1]", 0, 1, "F8_E4M3")}), "1", "x: tensor \"a\": dtype \"F8_E4M3\"" + known},
          {object({tensor("a", "[1]", 0, 1, "u8")}), "1", "x: tensor \"a\": dtype \"u8\"" + known},
          {"{\"a\":{\"dtype\":8}}", "", "x: tensor \"a\": dtype must be a string, not a number"}});
}

TEST_CASE("shapes hold whole numbers of a size that exists", "[unit]") {
  const std::string must = "x: tensor \"a\": shape must hold whole numbers, not ";
  std::string deep = "[1";
  for (int i = 0; i < 64; ++i) deep += ",1";
  deep += "]";
  expect({{object({tensor("a", "[1.0]", 0, 1)}), "1", must + "the number 1.0"},
          {object({tensor("a", "[1e0]", 0, 1)}), "1", must + "the number 1e0"},
          {object({tensor("a", "[-1]", 0, 1)}), "1", must + "a number below 0"},
          {object({tensor("a", "[99999999999999999999]", 0, 1)}), "1", must + "the number 99999999999999999999"},
          {object({tensor("a", "[[1]]", 0, 1)}), "1", must + "an array"},
          {object({tensor("a", "[\"1\"]", 0, 1)}), "1", must + "a string"},
          {object({tensor("a", "1", 0, 1)}), "1",
           "x: tensor \"a\": shape must be an array of whole numbers, not a number"},
          {object({tensor("a", "[281474976710657]", 0, 1)}), "1",
           "x: tensor \"a\": shape: 281474976710657 is too large (at most 2^48)"},
          {object({tensor("a", deep, 0, 1)}), "1", "x: tensor \"a\": more than 64 dimensions"},
          {object({tensor("a", "[281474976710656,281474976710656]", 0, 1)}), "1",
           "x: tensor \"a\": data_offsets [0, 1] cannot hold its shape, which is too large for any memory"},
          {object({tensor("a", "[0,281474976710656,281474976710656]", 0, 0)}), "",
           "x: tensor \"a\": data_offsets [0, 0] cannot hold its shape, which is too large for any memory"},
          {object({tensor("a", "[2,3]", 0, 5)}), "12345",
           "x: tensor \"a\": data_offsets [0, 5] hold 5 bytes, its shape and dtype need 6"},
          {object({tensor("a", "[2,3]", 0, 12, "F32")}), "123456789012",
           "x: tensor \"a\": data_offsets [0, 12] hold 12 bytes, its shape and dtype need 24"}});
}

TEST_CASE("data_offsets are two whole numbers within the data", "[unit]") {
  const std::string must = "x: tensor \"a\": data_offsets must be an array of two whole numbers, not ";
  const std::string start = "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":";
  expect({{start + "[0]}}", "1", must + "an array of another length"},
          {start + "[]}}", "1", must + "an array of another length"},
          {start + "[0,1,2]}}", "1", must + "a number"},
          {start + "[0,1.0]}}", "1", must + "the number 1.0"},
          {start + "[-1,0]}}", "1", must + "a number below 0"},
          {start + "[0,-0]}}", "1", must + "a number below 0"},
          {start + "{}}}", "1", must + "an object"},
          {start + "[1,0]}}", "1", "x: tensor \"a\": data_offsets [1, 0] end before they begin"},
          {start + "[0,1]}}", "",
           "x: tensor \"a\": data_offsets [0, 1] reach beyond the 0 bytes of data: the file is cut short"},
          {start + "[18446744073709551615,18446744073709551615]}}", "1",
           "x: tensor \"a\": data_offsets [18446744073709551615, 18446744073709551615] reach beyond the 1 bytes of "
           "data: the file is cut short"}});
}

TEST_CASE("every byte of the data belongs to exactly one tensor", "[unit]") {
  expect({{object({tensor("a", "[2]", 0, 2), tensor("b", "[2]", 1, 3)}), "123",
           "x: tensor \"b\": data_offsets [1, 3] overlap what ends at byte 2"},
          {object({tensor("a", "[2]", 0, 2), tensor("b", "[2]", 0, 2)}), "12",
           "x: tensor \"b\": data_offsets [0, 2] overlap what ends at byte 2"},
          {object({tensor("a", "[2]", 0, 2), tensor("b", "[1]", 3, 4)}), "1234",
           "x: tensor \"b\": data_offsets [3, 4] leave a hole after byte 2"},
          {object({tensor("a", "[1]", 1, 2)}), "12", "x: tensor \"a\": data_offsets [1, 2] leave a hole after byte 0"},
          {object({tensor("a", "[2]", 0, 2)}), "123", "x: 1 bytes after the last tensor belong to none"},
          {"{}", "1234", "x: 4 bytes after the last tensor belong to none"}});
}

TEST_CASE("names stand once, are short and can be printed", "[unit]") {
  const std::string a = tensor("a", "[0]", 0, 0);
  expect({{object({a, tensor("b", "[0]", 0, 0), a}), "", "x: tensor \"a\" stands twice"},
          {object({a, tensor("\\u0061", "[0]", 0, 0)}), "", "x: tensor \"a\" stands twice"},
          {object({tensor("a\\nb", "[0]", 0, 0)}), "", "x: tensor \"a\\nb\": control characters in a name"},
          {object({tensor("a\\u0000", "[0]", 0, 0)}), "", "x: tensor \"a\\u0000\": control characters in a name"},
          {object({tensor(std::string(513, 'n'), "[0]", 0, 0)}), "", "x: a name of 513 bytes (at most 512)"}});
  CHECK(message_of(with_length(object({tensor(std::string(512, 'n'), "[0]", 0, 0)}))) == "");
}

TEST_CASE("metadata is one small object of strings", "[unit]") {
  expect({{"{\"__metadata__\":[]}", "", "x: __metadata__ must be an object, not an array"},
          {"{\"__metadata__\":{\"a\":1}}", "", "x: __metadata__: \"a\" must be a string, not a number"},
          {"{\"__metadata__\":{\"a\":{}}}", "", "x: __metadata__: \"a\" must be a string, not an object"},
          {"{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", "", "x: __metadata__: \"a\" stands twice"},
          {"{\"__metadata__\":{},\"__metadata__\":{}}", "", "x: __metadata__ stands twice"},
          {"{\"__metadata__\":{\"a\":\"" + std::string(1 << 20, 'v') + "\"}}", "",
           "x: __metadata__ is larger than 1048576 bytes"}});
}

TEST_CASE("more than a million tensors are refused", "[slow]") {
  std::vector<std::string> tensors;
  for (int i = 0; i < 1'000'001; ++i) tensors.push_back(tensor(cat(i), "[]", i, i + 1));
  CHECK(message_of(with_length(object(tensors))) == "x: more than 1000000 tensors");
}

TEST_CASE("what the format allows is read", "[unit]") {
  const testing::TemporaryFolder folder;
  const auto read = [&](const std::string& header, const std::string& data) {
    testing::write_bytes(folder / "x", with_length(header) + data);
    return SafetensorsFile(folder / "x");
  };
  CHECK(read("{}", "").names().empty());
  CHECK(read("  {}   ", "").names().empty());
  CHECK(read("{\"__metadata__\":{\"\":\"\\u00e9\"}}", "").metadata() == Metadata{{"", "\xC3\xA9"}});
  // Out of order, not aligned, a scalar, an empty tensor between two others.
  const SafetensorsFile file = read(object({tensor("b", "[]", 1, 5, "I32"), tensor("empty", "[3,0]", 1, 1),
                                            tensor("a", "[1]", 0, 1)}),
                                    std::string("\x07\x01\x02\x00\x00", 5));
  CHECK(file.names() == std::vector<std::string>{"a", "b", "empty"});
  CHECK(file.read("a").item<int>() == 7);
  CHECK(file.read("b").item<int>() == 0x0201);
  CHECK(file.read("b").dim() == 0);
  CHECK(file.read("empty").sizes() == at::IntArrayRef({3, 0}));
}
