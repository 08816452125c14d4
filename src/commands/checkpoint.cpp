// quell checkpoint ls|verify|inspect|diff|prune
#include "commands/commands.h"

#include <memory>

#include "commands/answer.h"

namespace quell {
namespace {

struct Arguments {
  std::string path, other;
  bool json = false, dry = false;
  CheckpointConfig keep;
  int64_t keep_every = 0;
  std::string keep_best;
};

// Adds a sub-command that prints what `ask` answers; where the answer is no, its exit code says so.
template <class Ask>
CLI::App* add(CLI::App& parent, Action& chosen, const char* name, const char* help, const std::shared_ptr<Arguments>& args, Ask ask) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->add_flag("--json", args->json, "As JSON");
  command->callback([args, ask, &chosen] {
    chosen = [args, ask] { return print(ask(*args), args->json); };
  });
  return command;
}

void path_of(CLI::App* command, std::string& path, const char* name, const char* help) { command->add_option(name, path, help)->required()->type_name(""); }

Answer prune(const Arguments& args) {
  CheckpointConfig keep = args.keep;
  if (args.keep_every > 0) keep.keep_every = args.keep_every;
  if (!args.keep_best.empty()) keep.keep_best = args.keep_best;
  if (keep.keep_best && !larger_is_better(*keep.keep_best)) {
    throw UsageError("--keep-best: " + *keep.keep_best + " is no loss or accuracy of an evaluation set, like valid.loss");
  }
  return prune_checkpoints(args.path, keep, args.dry);
}

}  // namespace

void add_checkpoint(CLI::App& program, Action& chosen) {
  CLI::App* all = program.add_subcommand("checkpoint", "Look at a run's checkpoints, check them, compare them, remove them");
  all->require_subcommand(1);
  const auto args = std::make_shared<Arguments>();
  path_of(add(*all, chosen, "ls", "List a run's checkpoints", args, [](const Arguments& a) { return list_checkpoints_of(a.path); }),
          args->path, "DIR", "A run's folder, or its folder of checkpoints");
  path_of(add(*all, chosen, "verify", "Hold every byte against its digest; exit code 1 where one is not sound", args,
              [](const Arguments& a) { return verify_checkpoints(a.path); }),
          args->path, "DIR", "A run's folder, its folder of checkpoints, or one checkpoint");
  path_of(add(*all, chosen, "inspect", "Say what a checkpoint holds", args, [](const Arguments& a) { return inspect_checkpoint(a.path); }),
          args->path, "DIR", "A checkpoint, or a run for its newest");
  CLI::App* diff = add(*all, chosen, "diff", "Compare two checkpoints tensor by tensor, and their run files; exit code 1 where they differ", args,
                       [](const Arguments& a) { return diff_checkpoints(a.path, a.other); });
  path_of(diff, args->path, "A", "A checkpoint, or a run for its newest");
  path_of(diff, args->other, "B", "Another");
  CLI::App* prune_command = add(*all, chosen, "prune", "Remove what need not stay of a run's checkpoints", args, prune);
  path_of(prune_command, args->path, "DIR", "A run's folder");
  prune_command->add_option("--keep-last", args->keep.keep_last, "The newest that stay (default: 2)")
      ->type_name("N")->check(CLI::Range(int64_t{2}, int64_t{1'000'000'000}).description(""));
  prune_command->add_option("--keep-every", args->keep_every, "Multiples of so many steps stay")
      ->type_name("N")->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}).description(""));
  prune_command->add_option("--keep-best", args->keep_best, "The best by this number stays, like valid.loss")->type_name("METRIC");
  prune_command->add_flag("--dry-run", args->dry, "Only say what would go");
}

}  // namespace quell
