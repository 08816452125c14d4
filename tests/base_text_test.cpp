// Numbers and bytes as messages show them.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "base/text.h"

using namespace quell;

TEST_CASE("the shortest text of a number reads back as the same number", "[unit]") {
  CHECK(shortest(1e-6) == "1e-06");
  CHECK(shortest(0.1) == "0.1");
  CHECK(shortest(3) == "3");
  CHECK(shortest(-2.5) == "-2.5");
  CHECK(shortest(std::numeric_limits<double>::infinity()) == "inf");
  for (uint64_t i = 0; i < 1000; ++i) {
    const double value = std::ldexp(unit_double(7, i) - 0.5, static_cast<int>(i) - 500);
    CHECK(std::stod(shortest(value)) == value);
  }
}

TEST_CASE("significant digits keep their zeros", "[unit]") {
  CHECK(significant(1.4, 3) == "1.40");
  CHECK(significant(0.0012345, 3) == "0.00123");
  CHECK(significant(100, 3) == "100");
  CHECK(significant(0, 3) == "0.00");
}

TEST_CASE("messages are concatenated from words and numbers", "[unit]") {
  CHECK(cat("eps: ", 1e-6, " of ", 12, " in ", std::string("x"), '.') == "eps: 1e-06 of 12 in x.");
  CHECK(join({"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(join({}, ", ").empty());
}

TEST_CASE("sizes, counts and times are written as people write them", "[unit]") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1536) == "1.5 KiB");
  CHECK(human_bytes(1.5 * (1 << 30)) == "1.5 GiB");
  CHECK(human_bytes(1048575) == "1.0 MiB");
  CHECK(human_count(950) == "950");
  CHECK(human_count(124439808) == "124.4 M");
  CHECK(human_count(999999) == "1.0 M");
  CHECK(human_count(12.25) == "12.2");
  CHECK(human_seconds(12e-6) == "12 us");
  CHECK(human_seconds(0.012) == "12 ms");
  CHECK(human_seconds(0.9999) == "1.0 s");
  CHECK(human_seconds(38.2) == "38 s");
  CHECK(human_seconds(59.9) == "1 min");
  CHECK(human_seconds(61) == "1 min 1 s");
  CHECK(human_seconds(4320) == "1 h 12 min");
  CHECK(human_seconds(90000) == "1 d 1 h");
  CHECK(human_seconds(NAN) == "?");
}

TEST_CASE("edit distance counts a swap of neighbours once", "[unit]") {
  CHECK(edit_distance("width", "width") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("wdith", "width") == 1);
  CHECK(edit_distance("ca", "abc") == 3);
}

TEST_CASE("the closest word is found only when it is near", "[unit]") {
  const std::vector<std::string> words = {"width", "layers", "heads", "kv_heads"};
  CHECK(closest("layer", words) == "layers");
  CHECK(closest("wdith", words) == "width");
  CHECK(closest("head", words) == "heads");
  CHECK(closest("optimizer", words).empty());
  CHECK(closest("x", words).empty());
}

TEST_CASE("the first invalid byte of UTF-8 is found", "[unit]") {
  CHECK(is_utf8("plain"));
  CHECK(is_utf8("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF \xED\x9F\xBF \xEE\x80\x80"));
  CHECK(first_invalid_utf8("ab\xFF") == 2);
  CHECK(first_invalid_utf8("a\x80") == 1);             // a continuation alone
  CHECK(first_invalid_utf8("a\xC3") == 1);             // cut
  CHECK(first_invalid_utf8("a\xE2\x82") == 1);         // cut
  CHECK(first_invalid_utf8("a\xC3(") == 1);            // no continuation
  CHECK(first_invalid_utf8("\xC0\xAF") == 0);          // overlong
  CHECK(first_invalid_utf8("\xE0\x9F\xBF") == 0);      // overlong
  CHECK(first_invalid_utf8("\xF0\x8F\xBF\xBF") == 0);  // overlong
  CHECK(first_invalid_utf8("\xED\xA0\x80") == 0);      // a surrogate
  CHECK(first_invalid_utf8("\xF4\x90\x80\x80") == 0);  // above U+10FFFF
  CHECK(first_invalid_utf8("\xF5\x80\x80\x80") == 0);
}
