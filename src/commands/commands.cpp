#include "commands/commands.h"

#include "base/error.h"
#include "base/text.h"

namespace quell {

void require_commands(const CLI::App& program, int argc, const char* const* argv) {
  const CLI::App* group = &program;
  std::string before;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const std::string word = argv[i];
    const CLI::App* next = nullptr;
    std::vector<std::string> names;
    for (const CLI::App* command : group->get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
      if (command->get_name() == word) next = command;
    }
    if (names.empty()) return;
    if (next == nullptr) {
      const std::string near = closest(word, names), all = "the commands are " + join(names, ", ");
      throw UsageError(cat(before, word, ": no such command; ", near.empty() ? all : cat("did you mean \"", before, near, "\"?")));
    }
    group = next;
    before += word + " ";
  }
}

}  // namespace quell
