// Every error text, word for word: tests/golden/config_errors.txt holds inputs and messages. What a rule accepts is
// tested in config_load_test.cpp and config_scalars_test.cpp.
#include <catch2/catch.hpp>

#include <map>

#include "base/files.h"
#include "config_example.h"

namespace quell {
namespace {

struct Case {
  std::string title, text, message;
  std::vector<config::Override> overrides;
};

std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
    } else if (text[++i] == 'x') {
      out += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      out += text[i] == 't' ? '\t' : text[i] == 'n' ? '\n' : text[i];
    }
  }
  return out;
}

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  std::istringstream file(files::read(QUELL_GOLDEN "/config_errors.txt"));
  for (std::string line; std::getline(file, line);) {
    const std::string rest = line.size() > 2 ? line.substr(2) : "";
    if (line.starts_with("=== ")) cases.push_back({line.substr(4), "", "", {}});
    if (cases.empty() || line.empty()) continue;
    Case& now = cases.back();
    if (line[0] == '|') now.text += unescape(rest) + "\n";
    if (line[0] == '>') now.message += (now.message.empty() ? "" : "\n") + rest;
    if (line[0] == '$') {
      const bool is_set = rest.starts_with("--set ");
      now.overrides.push_back({unescape(is_set ? rest.substr(6) : rest), is_set});
    }
  }
  return cases;
}

// The message without places, source lines and the key's name: what two cases must not share.
std::string essence(const Case& golden) {
  std::string out = golden.overrides.empty() ? "file" : golden.overrides[0].is_set ? "--set" : "positional";
  std::istringstream lines(golden.message);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    ")) continue;
    out += '\n';
    out += line.substr(line.starts_with("  ") ? 0 : std::min(line.find(": "), line.size()));
  }
  return out;
}

TEST_CASE("every mistake is reported with its place, a caret, what is allowed and what to do", "[unit]") {
  const std::vector<Case> cases = read_cases();
  REQUIRE(cases.size() > 190);
  for (const Case& golden : cases) {
    INFO(golden.title);
    CHECK(example::complaint(golden.text, golden.overrides) == golden.message);
  }
}

TEST_CASE("no two golden messages differ only in their place", "[unit]") {
  std::map<std::string, std::string> seen;
  for (const Case& golden : read_cases()) {
    const auto [other, is_new] = seen.emplace(essence(golden), golden.title);
    INFO(golden.title << " and " << other->second << ":\n" << golden.message);
    CHECK(is_new);
  }
}

TEST_CASE("notes and source lines of a message fit into 80 columns", "[unit]") {
  for (const Case& golden : read_cases()) {
    std::istringstream lines(golden.message);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK((line.size() <= 80 || !line.starts_with("  ")));
    }
  }
}

TEST_CASE("at most twenty mistakes are shown and the others counted", "[unit]") {
  std::string text = "optimizer:\n  milestones:\n";
  for (int i = 0; i < 5000; ++i) text += "    - x\n";
  const std::string message = example::complaint(text);
  CHECK(message.find("run.yaml:3:7: optimizer.milestones.0:") == 0);
  CHECK(message.find("optimizer.milestones.19:") != std::string::npos);
  CHECK(message.find("optimizer.milestones.20:") == std::string::npos);
  CHECK(message.ends_with("\nand 4980 more mistakes"));
}

TEST_CASE("columns count characters and the caret stands under the value behind wide text", "[unit]") {
  CHECK(example::complaint("model: {\"\xC3\xA9\xE2\x82\xAC\": 1, layers: x}") ==
        "run.yaml:1:9: model.\xC3\xA9\xE2\x82\xAC: unknown key\n"
        "    1 | model: {\"\xC3\xA9\xE2\x82\xAC\": 1, layers: x}\n"
        "      |         ^^^^\n"
        "  allowed here: width, layers, heads, head_width, norm, preset\n"
        "run.yaml:1:26: model.layers: expected an integer, got \"x\"\n"
        "    1 | model: {\"\xC3\xA9\xE2\x82\xAC\": 1, layers: x}\n"
        "      |                          ^\n"
        "  allowed: an integer, at least 1 and at most 1000");
}

TEST_CASE("a long line is cut around its caret", "[unit]") {
  const std::string message = example::complaint("model: {width: " + std::string(200, '1') + "x, layers: x}");
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK((line.size() <= 84 || !line.starts_with("   ")));
  }
  CHECK(message.find("...") != std::string::npos);
}

TEST_CASE("no control character of a value reaches the message", "[unit]") {
  const std::string message = example::complaint("steps: \"\\e[31m\\x07\"\n\"\\e[2J\": 1\n");
  CHECK(message.find("got the quoted text \"?[31m?\"") != std::string::npos);
  CHECK(message.find("?[2J: unknown key") != std::string::npos);
  for (const char c : message) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
}

TEST_CASE("a missing file, a folder and a file over 1 MiB are usage errors", "[unit]") {
  const auto message_of = [](const std::string& path) -> std::string {
    try {
      config::Source::from_file(path);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  char folder[] = "/tmp/quell_config_XXXXXX";
  REQUIRE(mkdtemp(folder));
  const std::string at = folder;
  files::write_atomically(at + "/text_small.yaml", "name: x\n");
  files::write_atomically(at + "/big.yaml", std::string((1 << 20) + 1, '\n'));
  files::write_atomically(at + "/limit.yaml", "name: x\n" + std::string((1 << 20) - 8, '\n'));
  CHECK(message_of(at + "/text_smal.yaml") ==
        at + "/text_smal.yaml: no such file\n  did you mean " + at + "/text_small.yaml?");
  CHECK(message_of(at + "/none/x.yaml") == at + "/none/x.yaml: no such file");
  CHECK(message_of(at) == at + ": is a folder, not a run file");
  CHECK(message_of(at + "/big.yaml") ==
        at + "/big.yaml: is 1.0 MiB large\n  allowed: at most 1.0 MiB; is this really a run file?");
  CHECK(config::load<example::Run>(config::Source::from_file(at + "/limit.yaml")).name == "x");
  files::remove_all(at);
}

}  // namespace
}  // namespace quell
