// quell train FILE [key=value...]
#include "commands/commands.h"
#include "config/load.h"
#include "train/session.h"

#include <memory>

#include "commands/overrides.h"

namespace quell {

void add_train(CLI::App& program, Action& chosen) {
  struct Arguments {
    ConfigArguments config;
    TrainOptions options;
    std::string resume;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("train", "Train a model from a YAML file");
  args->config.add_to(*command);
  command->add_option("--run", args->options.folder, "The run's folder (default: runs/<name>)")->type_name("DIR");
  command->add_flag("--dry-run", args->options.dry_run, "Do two steps, of which the second is timed; print memory and predicted time, write nothing");
  command->add_option("--overfit", args->options.overfit, "Train on the first N samples only; the loss must come near zero")
      ->type_name("N")->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}).description(""));
  command->add_flag("--resume{must}", args->resume, "Go on with the run in its folder: the same as resume=must; or --resume=auto, --resume=PATH");
  command->add_option("--accept", args->options.accept, "A key whose change this resumed run takes, though it changes numbers")
      ->type_name("KEY")->expected(1)->take_all()->allow_extra_args(false);
  command->add_flag("--quiet,-q", args->options.quiet, "Print warnings and errors only");
  command->callback([args, &chosen] {
    chosen = [args] {
      if (!args->resume.empty()) args->config.set.push_back("resume=" + args->resume);
      return run_training(config::load<RunConfig>(args->config.source()), args->options);
    };
  });
}

}  // namespace quell
