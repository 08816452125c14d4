#include "commands/commands.h"

#include "base/error.h"
#include "base/text.h"

namespace quell {

void require_command(const CLI::App& program, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  for (const std::string& name : names) {
    if (name == word) return;
  }
  const std::string near = closest(word, names);
  throw UsageError(cat(word, ": no such command; ", near.empty() ? "the commands are " + join(names, ", ") : cat("did you mean \"", near, "\"?")));
}

}  // namespace quell
