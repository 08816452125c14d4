// Which texts are which scalars, exactly.
#include <catch2/catch.hpp>

#include <cmath>

#include "config/scalars.h"

namespace quell::config {
namespace {

template <class T>
std::optional<T> parsed(std::string_view text, const FieldInfo& info = {}) {
  T value{};
  if (parse(text, info, value)) return std::nullopt;
  return value;
}
std::optional<int64_t> integer(std::string_view text, const FieldInfo& info = {}) {
  return parsed<int64_t>(text, info);
}
std::optional<double> number(std::string_view text, const FieldInfo& info = {}) { return parsed<double>(text, info); }

TEST_CASE("integers may have a sign, an exponent, a zero fraction and single underscores", "[unit]") {
  CHECK(integer("0") == 0);
  CHECK(integer("-0") == 0);
  CHECK(integer("+12") == 12);
  CHECK(integer("1_000_000") == 1000000);
  CHECK(integer("1e3") == 1000);
  CHECK(integer("1E+3") == 1000);
  CHECK(integer("1.5e3") == 1500);
  CHECK(integer("3.0") == 3);
  CHECK(integer("1200e-2") == 12);
  CHECK(integer("9223372036854775807") == std::numeric_limits<int64_t>::max());
  CHECK(integer("-9223372036854775808") == std::numeric_limits<int64_t>::min());
  CHECK(integer("9007199254740993") == 9007199254740993);
  for (const char* text : {"",
                           "-",
                           "+",
                           "1.5",
                           "1e-1",
                           "1__0",
                           "_1",
                           "1_",
                           "010",
                           "00",
                           "-07",
                           "0x10",
                           "0o10",
                           "0b1",
                           "1 0",
                           "1,0",
                           "e3",
                           "1e",
                           ".",
                           "9223372036854775808",
                           "-9223372036854775809",
                           "1e19",
                           "1e999999999999",
                           "10k",
                           "nan",
                           ".inf",
                           "true",
                           "1.5.2",
                           "--1"}) {
    INFO(text);
    CHECK(!integer(text));
  }
}

TEST_CASE("numbers are read to the nearest double", "[unit]") {
  CHECK(number("0.1") == 0.1);
  CHECK(number(".5") == 0.5);
  CHECK(number("5.") == 5.0);
  CHECK(number("1_0.2_5") == 10.25);
  CHECK(number("1e-6") == 1e-6);
  CHECK(number("4.9406564584124654e-324") == 4.9406564584124654e-324);
  CHECK(number("1.7976931348623157e308") == 1.7976931348623157e308);
  CHECK(number("0e999999999999") == 0.0);
  CHECK(std::signbit(*number("-0")));
  CHECK(number("123456789012345678901234567890") == 123456789012345678901234567890.0);
  for (const char* text :
       {"1e309", "-1e309", "1e-400", ".nan", "NaN", "-.INF", "inf", "01.5", "1.5f", "0x1p3", "1e+", "1k", ""}) {
    INFO(text);
    CHECK(!number(text));
  }
}

TEST_CASE("suffixes are powers of 1000 and keep integers exact", "[unit]") {
  const FieldInfo info = help("").suffixes();
  CHECK(integer("10k", info) == 10000);
  CHECK(integer("1.5M", info) == 1500000);
  CHECK(integer("10G", info) == 10000000000);
  CHECK(integer("2T", info) == 2000000000000);
  CHECK(integer("1.001k", info) == 1001);
  CHECK(number("0.1M", info) == 1e5);
  for (const char* text : {"1.0005k", "k", "10K", "10m", "10B", "10kk", "10 k", "10Gi", "9223372036854775807k"}) {
    INFO(text);
    CHECK(!integer(text, info));
  }
}

TEST_CASE("durations are seconds, or whole numbers of d, h, m and s from large to small", "[unit]") {
  const FieldInfo info = help("").duration();
  CHECK(integer("90", info) == 90);
  CHECK(integer("45m", info) == 2700);
  CHECK(integer("23h45m", info) == 85500);
  CHECK(integer("1d", info) == 86400);
  CHECK(integer("1d2h3m4s", info) == 93784);
  CHECK(integer("0s", info) == 0);
  CHECK(number("0.5", info) == 0.5);
  CHECK(number("1h30m", info) == 5400.0);
  for (const char* text :
       {"h", "1.5h", "45m1h", "1h1h", "1h 30m", "1h30", "-1h", "1w", "45min", "9999999999d", "1_0m"}) {
    INFO(text);
    CHECK(!integer(text, info));
  }
}

TEST_CASE("only true and false are booleans", "[unit]") {
  CHECK(parsed<bool>("true") == true);
  CHECK(parsed<bool>("false") == false);
  for (const char* text : {"True", "TRUE", "yes", "on", "1", "y", "no", "off", "0", "", "truee"})
    CHECK(!parsed<bool>(text));
}

TEST_CASE("ranges know open and closed ends", "[unit]") {
  CHECK(outside(help("").at_least(1), 1).empty());
  CHECK(outside(help("").above(1), 1) == "too small");
  CHECK(outside(help("").at_most(1), 1).empty());
  CHECK(outside(help("").below(1), 1) == "too large");
  CHECK(outside(help("").at_least(0).at_most(1), -0.5L) == "too small");
  CHECK(outside(help(""), 1e300L).empty());
}

TEST_CASE("counts and durations are written as people write them", "[unit]") {
  CHECK(write(int64_t{10000000000}, help("").suffixes()) == "10G");
  CHECK(write(int64_t{1500000}, help("").suffixes()) == "1500k");
  CHECK(write(int64_t{1800}, help("").suffixes()) == "1800");
  CHECK(write(int64_t{0}, help("").suffixes()) == "0");
  CHECK(write(int64_t{10000}, help("")) == "10000");
  CHECK(write(85500.0, help("").duration()) == "23h45m");
  CHECK(write(int64_t{86461}, help("").duration()) == "1d1m1s");
  CHECK(write(0.5, help("").duration()) == "0.5");
  CHECK(write(1e-6, help("")) == "1e-06");
}

}  // namespace
}  // namespace quell::config
