// quell plan FILE [key=value...]
#include "commands/commands.h"
#include "commands/overrides.h"
#include "config/load.h"
#include "tools/plan.h"

#include <iostream>
#include <memory>

namespace quell {

void add_plan(CLI::App& program, Action& chosen) {
  struct Arguments {
    ConfigArguments config;
    PlanOptions options;
    bool json = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("plan", "Say what a run will need: parameters, FLOPs, memory, disk, time (exit code 1: too much memory)");
  args->config.add_to(*command);
  command->add_option("--memory", args->options.memory, "What must be enough, like 24GB (default: this machine's)")->type_name("SIZE");
  command->add_option("--speed", args->options.speed, "FLOP/s that a rank reaches, like 10T (default: a probe of this machine)")->type_name("N");
  command->add_option("--world", args->options.world, "Ranks that share a step")->type_name("N")->check(CLI::Range(int64_t{1}, int64_t{1'000'000}).description(""))->capture_default_str();
  command->add_option("--bandwidth", args->options.bandwidth, "Bytes a second that each rank can send, like 10GB")->type_name("SIZE");
  command->add_flag("--json", args->json, "Print one JSON object: bytes, FLOP and seconds");
  command->callback([args, &chosen] {
    chosen = [args] {
      const Plan plan = make_plan(config::load<RunConfig>(args->config.source()), args->options);
      std::cout << (args->json ? json_of(plan).dump(2) + "\n" : text_of(plan));
      return plan.over() > 0 ? 1 : 0;
    };
  });
}

}  // namespace quell
