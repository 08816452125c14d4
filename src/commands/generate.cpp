// quell generate RUN --prompt TEXT
#include "commands/commands.h"
#include "tools/generate.h"

#include <iostream>
#include <memory>

namespace quell {

void add_generate(CLI::App& program, Action& chosen) {
  auto args = std::make_shared<GenerateOptions>();
  CLI::App* command = program.add_subcommand("generate", "Generate text from a run's weights");
  command->add_option("RUN", args->run, "The run's folder")->required()->type_name("");
  command->add_option("--prompt,-p", args->prompt, "What the text begins with (default: a new line)")->type_name("TEXT");
  command->add_option("--tokens,-n", args->sample.tokens, "How many tokens; the model sees the last model.context of all")->type_name("N")
      ->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--temperature,-t", args->sample.temperature, "Divides the logits; 0 takes the most likely token")
      ->type_name("X")->check(CLI::NonNegativeNumber)->capture_default_str();
  command->add_option("--top-k", args->sample.top_k, "Only the K most likely tokens")->type_name("K")->check(CLI::PositiveNumber);
  command->add_option("--top-p", args->sample.top_p, "Only the smallest set of tokens of this probability")->type_name("P")
      ->check(CLI::Range(0.0, 1.0))->capture_default_str();
  command->add_option("--seed", args->sample.seed, "Another seed, another text")->type_name("N")->capture_default_str();
  command->callback([args, &chosen] {
    chosen = [args] {
      generate(*args, [](const std::string& text) { std::cout << text << std::flush; });
      std::cout << "\n";
      return 0;
    };
  });
}

}  // namespace quell
