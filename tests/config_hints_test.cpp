// Which guess is made for a key that does not exist; the messages around it are in tests/golden/config_errors.txt.
#include <catch2/catch.hpp>

#include <set>

#include "config/hints.h"
#include "config_example.h"

namespace quell::config {
namespace {

std::vector<std::string> hint(const std::string& section, const std::string& name,
                              const std::vector<std::string>& siblings) {
  return hints(keys_of<example::Run>(), section, name, siblings);
}
using Lines = std::vector<std::string>;

TEST_CASE("the spelling of a sibling comes before everything else", "[unit]") {
  CHECK(hint("model", "Head-Width", {"heads", "head_width"}) == Lines{"did you mean \"head_width\"?"});
}

TEST_CASE("a key of another section comes before a sibling that is only similar", "[unit]") {
  CHECK(hint("evaluate", "layers", {"layer"}) == Lines{"\"layers\" belongs under model or variants.NAME"});
}

TEST_CASE("short words are not taken for each other", "[unit]") {
  CHECK(hint("model", "zz", {"lr", "eps"}) == Lines{"allowed here: lr, eps"});
  CHECK(hint("model", "xyz", {"eps", "kind"}) == Lines{"allowed here: eps, kind"});
  CHECK(hint("model", "ep", {"eps", "kind"}) == Lines{"did you mean \"eps\"?"});
}

TEST_CASE("swapped letters are one edit", "[unit]") {
  CHECK(hint("model", "lyaers", {"layers", "heads"}) == Lines{"did you mean \"layers\"?"});
}

TEST_CASE("names of other trainers are recognised in any spelling, at any depth", "[unit]") {
  const Lines expected{"what other trainers call num_hidden_layers is model.layers here"};
  CHECK(hint("", "num_hidden_layers", {}) == expected);
  CHECK(hint("model", "Num-Hidden-Layers", {"heads"}) == expected);
}

TEST_CASE("a foreign name whose key this run file does not have gives no hint", "[unit]") {
  CHECK(hint("", "z_loss", {"name"}) == Lines{"allowed here: name"});
}

TEST_CASE("names of other trainers are listed once, in lower case, and are not names of their own keys", "[unit]") {
  std::set<std::string> seen;
  for (const ForeignName& foreign : foreign_names()) {
    INFO(foreign.name);
    CHECK(seen.insert(foreign.name).second);
    CHECK(std::string(foreign.name).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos);
    CHECK(last_part(foreign.key) != foreign.name);
    CHECK((*foreign.key || *foreign.remark));
  }
}

TEST_CASE("a very long key gets no hint", "[unit]") { CHECK(hint("", std::string(65, 'a'), {"a"}).empty()); }

TEST_CASE("a path gets the hint of its first unknown part", "[unit]") {
  const auto path = [](const std::string& text) { return path_hints(keys_of<example::Run>(), text); };
  CHECK(path("modle.layers") == Lines{"did you mean \"model\"?"});
  CHECK(path("model.layres") == Lines{"did you mean \"model.layers\"?"});
  CHECK(path("evaluate.sets.0.nmae") == Lines{"did you mean \"evaluate.sets.0.name\"?"});
  CHECK(path("variants.local.haeds") == Lines{"did you mean \"variants.local.heads\"?"});
  CHECK(path("n_embd") == Lines{"what other trainers call n_embd is model.width here"});
}

}  // namespace
}  // namespace quell::config
