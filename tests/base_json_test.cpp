// What strict JSON refuses, and where it says the fault is.
#include <catch2/catch.hpp>

#include "base/error.h"
#include "base/json.h"

using namespace quell;
using Catch::Message;

TEST_CASE("JSON is read with its order, types and nesting", "[unit]") {
  const Json json =
      parse_json(R"({"z": [1, -2, 2.5, "\u00e9\n", true, null, {}, []], "a": {"b": {"c": 18446744073709551615}}})", "x");
  CHECK(json.begin().key() == "z");
  CHECK(json["z"][0].is_number_unsigned());
  CHECK(json["z"][1] == -2);
  CHECK(json["z"][2] == 2.5);
  CHECK(json["z"][3] == "\xC3\xA9\n");
  CHECK(json["z"].size() == 8);
  CHECK(json["a"]["b"]["c"] == 18446744073709551615ull);
  CHECK(json.dump() == R"({"z":[1,-2,2.5,"é\n",true,null,{},[]],"a":{"b":{"c":18446744073709551615}}})");
  CHECK(parse_json("3", "x") == 3);
}

TEST_CASE("a name that stands twice in one object is an error at its place", "[unit]") {
  CHECK_THROWS_MATCHES(parse_json("{\"a\": 1,\n \"b\": 2, \"a\": 3}", "x.json"), DataError,
                       Message("x.json:2:10: not valid JSON: the name \"a\" stands twice"));
  CHECK_THROWS_MATCHES(parse_json(R"({"q\"\\": 1, "q\"\\": 2})", "x.json"), DataError,
                       Message(R"(x.json:1:14: not valid JSON: the name "q"\" stands twice)"));
  CHECK_NOTHROW(parse_json(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})", "x.json"));
}

TEST_CASE("numbers that are not finite are errors", "[unit]") {
  CHECK_THROWS_MATCHES(parse_json("[1,\n1e999]", "x.json"), DataError,
                       Message("x.json:2:5: not valid JSON: number overflow parsing '1e999'"));
  CHECK_THROWS_MATCHES(
      parse_json("[NaN]", "x.json"), DataError,
      Message("x.json:1:2: not valid JSON: syntax error while parsing value - invalid literal; last read: '[N'"));
}

TEST_CASE("nesting deeper than 64 is an error", "[unit]") {
  CHECK_NOTHROW(parse_json(std::string(64, '[') + std::string(64, ']'), "x.json"));
  CHECK_THROWS_MATCHES(parse_json(std::string(65, '[') + std::string(65, ']'), "x.json"), DataError,
                       Message("x.json:1:65: not valid JSON: nested deeper than 64"));
  CHECK_THROWS_AS(parse_json(std::string(1000000, '['), "x.json"), DataError);
}

TEST_CASE("text after the value, and text that ends too early, are errors", "[unit]") {
  CHECK_THROWS_MATCHES(parse_json("{} x", "x.json"), DataError,
                       Message("x.json:1:4: not valid JSON: syntax error while parsing value - invalid literal; last read: '{} "
                               "x'; expected end of input"));
  CHECK_THROWS_MATCHES(parse_json("{\"a\": ", "x.json"), DataError,
                       Message("x.json:1:7: not valid JSON: syntax error while parsing value - unexpected end of input; expected "
                               "'[', '{', or a literal"));
  CHECK_THROWS_AS(parse_json("", "x.json"), DataError);
  CHECK_THROWS_MATCHES(parse_json(std::string_view("{}\0, lost", 9), "x.json"), DataError,
                       Message("x.json:1:3: not valid JSON: a zero byte"));
  CHECK_THROWS_AS(parse_json("[1,]", "x.json"), DataError);
  CHECK_THROWS_AS(parse_json("[01]", "x.json"), DataError);
  CHECK_THROWS_AS(parse_json("// no\n[]", "x.json"), DataError);
}

TEST_CASE("invalid UTF-8 in a string is an error, and a long fault is quoted in part", "[unit]") {
  CHECK_THROWS_MATCHES(parse_json("[\"a\xFF\"]", "x.json"), DataError,
                       Message("x.json:1:4: not valid JSON: syntax error while parsing value - invalid string: ill-formed UTF-8 "
                               "byte; last read: '\"a\xFF'"));
  try {
    parse_json("\"" + std::string(100000, 'a'), "x.json");
    FAIL("accepted");
  } catch (const DataError& error) {
    CHECK(std::string(error.what()).size() < 400);
  }
}

TEST_CASE("an object with many names is read in linear time", "[unit]") {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) text += "\"name" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  CHECK(parse_json(text, "x.json").size() == 200000);  // a quadratic reader takes minutes
}
