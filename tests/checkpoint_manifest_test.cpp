// The manifest's text: sealed by its digest, and strict in every field.
#include <catch2/catch.hpp>

#include <functional>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "checkpoint/manifest.h"

namespace quell {
namespace {

Manifest small() {
  Manifest manifest;
  manifest.step = 1;
  manifest.save = std::string(32, '1');
  manifest.run = std::string(32, 'a');
  manifest.config = "name: test\n";
  return manifest;
}

}  // namespace

TEST_CASE("a newer format is refused by its number", "[unit]") {
  Manifest manifest = small();
  std::string text = manifest_text(manifest);
  const Manifest back = parse_manifest(text, "m");
  CHECK(back.run == manifest.run);
  Json json = parse_json(text, "m");
  json.erase("digest");
  json["format"] = 2;
  std::string body = json.dump();
  body.pop_back();
  CHECK_THROWS_MATCHES(parse_manifest(cat(body, ",\"digest\":\"", xxh3_128_hex(body), "\"}\n"), "m"), CheckpointError,
                       Catch::Message("m: has format 2; this version of quell reads formats 1 to 1"));
}

TEST_CASE("a sealed manifest with a wrong field is refused with the field's name", "[unit]") {
  struct Case {
    const char* what;
    std::function<void(Json&)> change;
    const char* message;
  };
  const Case cases[] = {
      {"missing", [](Json& m) { m.erase("step"); }, "m: has no field step"},
      {"negative", [](Json& m) { m["step"] = -1; }, "m: step is not a whole number from 0 up"},
      {"fraction", [](Json& m) { m["step"] = 1.5; }, "m: step is not a whole number from 0 up"},
      {"huge", [](Json& m) { m["step"] = UINT64_MAX; }, "m: step is too large"},
      {"unknown", [](Json& m) { m["pickle"] = 1; }, "m: has the unknown field pickle"},
      {"digest", [](Json& m) { m["run"] = "xyz"; }, "m: run is no digest"},
      {"path", [](Json& m) { m["files"] = Json::array({{{"name", "../x"}, {"bytes", 1}, {"header", std::string(32, '0')}, {"tensors", Json::array()}}}); },
       "m: an entry of files is no plain file name"},
      {"list", [](Json& m) { m["files"] = 3; }, "m: files is not a list"},
      {"text", [](Json& m) { m["integers"]["a"] = "1"; }, "m: integers.a is no whole number"}};
  for (const Case& each : cases) {
    CAPTURE(each.what);
    Json json = parse_json(manifest_text(small()), "m");
    json.erase("digest");
    each.change(json);
    std::string body = json.dump();
    body.pop_back();
    CHECK_THROWS_MATCHES(parse_manifest(cat(body, ",\"digest\":\"", xxh3_128_hex(body), "\"}\n"), "m"), CheckpointError, Catch::Message(each.message));
  }
}

}  // namespace quell
