// The arguments that every sub-command with a run file takes: FILE, then key=value, and --set key=value.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "base/error.h"
#include "config/source.h"

namespace quell {

struct ConfigArguments {
  std::string file;
  std::vector<std::string> positional;
  std::vector<std::string> set;

  void add_to(CLI::App& command) {
    command.add_option("FILE", file, "The run file (YAML)")->required()->type_name("");
    command.add_option("KEY=VALUE", positional, "Overrides, like optimizer.lr=3e-4")->type_name("");
    command.add_option("--set", set, "The same, one at a time")->type_name("KEY=VALUE")->expected(1)->take_all()->allow_extra_args(false);
  }

  config::Source source() const {
    std::vector<config::Override> overrides;
    for (const std::string& text : positional) overrides.push_back({text, false});
    for (const std::string& text : set) overrides.push_back({text, true});
    return config::Source::from_file(file, overrides);
  }
};

}  // namespace quell
