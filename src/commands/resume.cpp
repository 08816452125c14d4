// quell verify-resume FILE [key=value...], quell replay RUN --step N
#include <memory>

#include "base/log.h"
#include "base/random.h"
#include "commands/answer.h"
#include "commands/commands.h"
#include "commands/overrides.h"
#include "config/load.h"
#include "tools/replay.h"
#include "tools/verify_resume.h"
#include "train/config.h"

namespace quell {

void add_verify_resume(CLI::App& program, Action& chosen) {
  struct Arguments {
    ConfigArguments config;
    VerifyResumeOptions options;
    bool json = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("verify-resume", "Prove that runs of a YAML file go on exactly: run it straight, and killed again and again");
  args->config.add_to(*command);
  command->add_option("--steps", args->options.steps, "Steps of both runs")->type_name("N")->check(CLI::Range(int64_t{1}, int64_t{1'000'000}).description(""))->capture_default_str();
  command->add_option("--kills", args->options.kills, "SIGKILLs, every second one in a save")->type_name("K")
      ->check(CLI::Range(int64_t{0}, int64_t{100'000}).description(""))->capture_default_str();
  command->add_option("--seed", args->options.seed, "Of the moments")->type_name("N")->capture_default_str();
  command->add_option("--folder", args->options.folder, "Where both runs are made (default: runs/<name>.verify-<id>)")->type_name("DIR");
  command->add_flag("--json", args->json, "As JSON");
  command->callback([args, &chosen] {
    chosen = [args] {
      const auto config = config::load<RunConfig>(args->config.source());  // mistakes are told here, once
      VerifyResumeOptions& options = args->options;
      options.run = {args->config.file};
      options.run.insert(options.run.end(), args->config.positional.begin(), args->config.positional.end());
      for (const std::string& text : args->config.set) options.run.push_back("--set=" + text);
      if (options.folder.empty()) options.folder = "runs/" + config.name + ".verify-" + unique_id().substr(0, 8);
      options.progress.on_note = [](const std::string& line) { log::info(line); };
      return print(verify_resume(options), args->json);
    };
  });
}

void add_replay(CLI::App& program, Action& chosen) {
  struct Arguments {
    std::string run;
    int64_t step = 0;
    bool json = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("replay", "Make a recorded step again and compare its numbers: transient or persistent?");
  command->add_option("RUN", args->run, "The run's folder")->required()->type_name("");
  command->add_option("--step", args->step, "The step, as metrics.jsonl counts it")->required()->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 53).description(""));
  command->add_flag("--json", args->json, "As JSON");
  command->callback([args, &chosen] {
    chosen = [args] { return print(replay(args->run, args->step), args->json); };
  });
}

}  // namespace quell
