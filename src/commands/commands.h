// The sub-commands: each adds its options to the program and, where it was chosen, returns what to run. One thin file each.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace quell {

// What the chosen sub-command runs; its result is the exit code.
using Action = std::function<int()>;

void add_train(CLI::App& program, Action& chosen);
void add_generate(CLI::App& program, Action& chosen);
void add_config(CLI::App& program, Action& chosen);
void add_data(CLI::App& program, Action& chosen);

}  // namespace quell
