// quell env: who this process would be among others, and why.
#include <iostream>

#include "base/machine.h"
#include "commands/commands.h"
#include "dist/environment.h"

namespace quell {

void add_env(CLI::App& program, Action& chosen) {
  program.add_subcommand("env", "Say which rank of which world this process would be, and by whose variables")->callback([&chosen] {
    chosen = [] {
      const Membership membership = membership_of(variables_of_process());
      std::cout << text_of(membership) << "\n";
      for (const std::string& note : membership.notes) std::cout << "note: " << note << "\n";
      const int cores = machine::cores();
      std::cout << cores << (cores == 1 ? " core" : " cores") << " for " << membership.local_size << (membership.local_size == 1 ? " rank\n" : " ranks\n");
      return 0;
    };
  });
}

}  // namespace quell
