// quell data prepare FILE... --out DIR, quell data verify PATH...
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "commands/answer.h"
#include "commands/commands.h"
#include "data/prepare.h"
#include "tools/verify_data.h"

#include <memory>

namespace quell {
namespace {

void add_prepare(CLI::App& data, Action& chosen) {
  auto args = std::make_shared<PrepareOptions>();
  CLI::App* command = data.add_subcommand("prepare", "Turn texts into tokens for training");
  command->add_option("FILE", args->files, "UTF-8 text (a document each, - for standard input) or .jsonl")->required()->type_name("");
  command->add_option("--out,-o", args->out, "The folder to make; it gets train/ and valid/")->required()->type_name("DIR");
  command->add_option("--tokenizer", args->tokenizer, "byte or char")->check(CLI::IsMember({"byte", "char"}))->capture_default_str();
  command->add_option("--valid", args->valid, "The part kept for validation, at the end of each text")->type_name("P")
      ->capture_default_str();
  command->callback([args, &chosen] {
    chosen = [args] {
      const PrepareSummary made = prepare_tokens(*args, {.on_note = [](const std::string& line) { log::info(line); }});
      log::info(cat(args->out, ": ", made.train_tokens, " tokens to train on, ", made.valid_tokens, " to validate, vocabulary ",
                    made.vocabulary, ", ", made.documents, made.documents == 1 ? " document" : " documents"));
      return 0;
    };
  });
}

// A line every two seconds. No signal is handled: nothing is written that could be left half, so one ends the program at once.
Progress every_two_seconds() {
  Progress progress;
  progress.report = [last = std::make_shared<Timer>()](const std::string& what, uint64_t done, uint64_t total) {
    if (last->seconds() < 2) return;
    last->restart();
    log::info(cat(what, ": ", 100 * done / total, " %"));
  };
  progress.on_note = [](const std::string& line) { log::warn(line); };
  return progress;
}

void add_verify(CLI::App& data, Action& chosen) {
  struct Arguments {
    std::vector<std::string> paths;
    bool json = false;
  };
  auto args = std::make_shared<Arguments>();
  CLI::App* command = data.add_subcommand("verify", "Read all of a data set and say what is wrong with it; exit code 1 where anything is");
  command->add_option("PATH", args->paths, "A folder of tokens, a raw .bin file, an IDX pair, a folder of images, or a run for all of its sets")
      ->required()->type_name("");
  command->add_flag("--json", args->json, "As JSON");
  command->callback([args, &chosen] {
    chosen = [args] { return print(verify_data(args->paths, every_two_seconds()), args->json); };
  });
}

}  // namespace

void add_data(CLI::App& program, Action& chosen) {
  CLI::App* data = program.add_subcommand("data", "Prepare training data, and verify what is there");
  data->require_subcommand(1);
  add_prepare(*data, chosen);
  add_verify(*data, chosen);
}

}  // namespace quell
