// quell data prepare FILE... --out DIR
#include "base/log.h"
#include "base/text.h"
#include "commands/commands.h"
#include "data/prepare.h"

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

}  // namespace

void add_data(CLI::App& program, Action& chosen) {
  CLI::App* data = program.add_subcommand("data", "Prepare training data");
  data->require_subcommand(1);
  add_prepare(*data, chosen);
}

}  // namespace quell
