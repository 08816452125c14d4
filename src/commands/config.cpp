// quell config show | check | explain | reference
#include "base/log.h"
#include "commands/commands.h"
#include "commands/overrides.h"
#include "config/load.h"
#include "config/print.h"
#include "config/reference.h"
#include "train/config.h"

#include <iostream>
#include <memory>

namespace quell {
namespace {

void add_show(CLI::App& group, Action& chosen) {
  auto args = std::make_shared<ConfigArguments>();
  auto origins = std::make_shared<bool>(false);
  CLI::App* command = group.add_subcommand("show", "Print the complete configuration that a run file gives");
  args->add_to(*command);
  command->add_flag("--origin", *origins, "Say after each value where it came from");
  command->callback([args, origins, &chosen] {
    chosen = [args, origins] {
      const config::Source source = args->source();
      const auto loaded = config::load<RunConfig>(source);
      std::cout << (*origins ? config::print_with_origins(loaded, source) : config::print(loaded));
      return 0;
    };
  });
}

void add_check(CLI::App& group, Action& chosen) {
  auto args = std::make_shared<ConfigArguments>();
  CLI::App* command = group.add_subcommand("check", "Say whether a run file is right, with all that is wrong");
  args->add_to(*command);
  command->callback([args, &chosen] {
    chosen = [args] {
      config::load<RunConfig>(args->source());
      log::info(args->file + ": right");
      return 0;
    };
  });
}

void add_explain(CLI::App& group, Action& chosen) {
  auto key = std::make_shared<std::string>();
  CLI::App* command = group.add_subcommand("explain", "Explain one key, like model.attention.qk_norm.kind");
  command->add_option("KEY", *key, "The key, its parts joined by dots")->required()->type_name("");
  command->callback([key, &chosen] {
    chosen = [key] {
      std::cout << config::explain<RunConfig>(*key);
      return 0;
    };
  });
}

void add_reference(CLI::App& group, Action& chosen) {
  group.add_subcommand("reference", "Print the page of all keys (Markdown)")->callback([&chosen] {
    chosen = [] {
      std::cout << config::reference<RunConfig>();
      return 0;
    };
  });
}

}  // namespace

void add_config(CLI::App& program, Action& chosen) {
  CLI::App* group = program.add_subcommand("config", "Look at run files and at what may stand in them");
  group->require_subcommand(1);
  add_show(*group, chosen);
  add_check(*group, chosen);
  add_explain(*group, chosen);
  add_reference(*group, chosen);
}

}  // namespace quell
