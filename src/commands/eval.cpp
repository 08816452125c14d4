// quell eval RUN [--data PATH...]
#include "commands/commands.h"
#include "tools/evaluate.h"
#include "train/session.h"

#include <iostream>
#include <memory>

namespace quell {

void add_eval(CLI::App& program, Action& chosen) {
  struct Arguments {
    EvaluateOptions options;
    bool all = false, json = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = program.add_subcommand("eval", "Evaluate a run's weights");
  command->add_option("RUN", args->options.run, "The run's folder")->required()->type_name("");
  command->add_option("--data,-d", args->options.data, "Sets to evaluate (default: those of the run)")->type_name("PATH");
  CLI::Option* batches = command->add_option("--batches", args->options.batches, "Batches of data.batch samples (default: as in the run)")
      ->type_name("N")->check(CLI::PositiveNumber);
  command->add_flag("--all", args->all, "Every sample of each set")->excludes(batches);
  command->add_option("--threads", args->options.threads, "CPU threads (default: as in the run)")->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1024}).description(""));
  command->add_flag("--ema", args->options.ema, "The moving average of the weights (`ema` in the run file)");
  command->add_option("--dump", args->options.dump, "Write predictions there, as safetensors")->type_name("DIR");
  command->add_option("--samples", args->options.samples, "With --dump: samples (from 0) whose attention is written too")
      ->type_name("N,...")->delimiter(',');
  command->add_flag("--json", args->json, "One JSON object a set, a line each");
  command->callback([args, &chosen] {
    chosen = [args] {
      if (args->all) args->options.batches = 0;
      args->options.progress = scanning();
      for (const SetReport& report : evaluate_run(args->options)) {
        std::cout << (args->json ? to_json(report).dump() + "\n" : to_text(report)) << std::flush;
      }
      return 0;
    };
  });
}

}  // namespace quell
