// The sub-commands: each adds its options to the program and, where it was chosen, returns what to run. One thin file each.
#pragma once

#include <CLI/CLI.hpp>

#include <functional>

namespace quell {

// What the chosen sub-command runs; its result is the exit code.
using Action = std::function<int()>;

// Throws UsageError with a suggestion where a word that stands where a sub-command is due names none: CLI11 only says that one is required.
void require_commands(const CLI::App& program, int argc, const char* const* argv);

void add_train(CLI::App& program, Action& chosen);
void add_launch(CLI::App& program, Action& chosen);
void add_env(CLI::App& program, Action& chosen);
void add_eval(CLI::App& program, Action& chosen);
void add_plan(CLI::App& program, Action& chosen);
void add_generate(CLI::App& program, Action& chosen);
void add_config(CLI::App& program, Action& chosen);
void add_checkpoint(CLI::App& program, Action& chosen);
void add_verify_resume(CLI::App& program, Action& chosen);
void add_replay(CLI::App& program, Action& chosen);
void add_data(CLI::App& program, Action& chosen);

}  // namespace quell
