// The program: parse, run the chosen sub-command, and be the one place where errors become messages and exit codes.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>

#include "base/error.h"
#include "base/log.h"
#include "commands/commands.h"
#include "commands/version.h"

namespace {

int run(int argc, char** argv) {
  CLI::App program("Quell trains transformers whose attention stays calm: QK-normalised decoders and vision transformers, from YAML files.", "quell");
  program.set_version_flag("--version", [] { return quell::version_text(); });
  program.require_subcommand(1);
  program.set_help_all_flag("--help-all", "Help of all sub-commands");
  quell::Action chosen;
  quell::add_train(program, chosen);
  quell::add_launch(program, chosen);
  quell::add_eval(program, chosen);
  quell::add_plan(program, chosen);
  quell::add_generate(program, chosen);
  quell::add_config(program, chosen);
  quell::add_checkpoint(program, chosen);
  quell::add_verify_resume(program, chosen);
  quell::add_replay(program, chosen);
  quell::add_env(program, chosen);
  quell::add_data(program, chosen);
  quell::require_commands(program, argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    // CLI11 prints help and version by exit(); its codes for mistakes are not ours.
    const int code = program.exit(problem);
    return code == 0 ? 0 : static_cast<int>(quell::Exit::usage);
  }
  return chosen();
}

// What a command printed is its result: where it cannot be written, the command has not done what it was asked for.
int with_output(int code) {
  std::cout.flush();
  if (std::cout && std::fflush(stdout) == 0) return code;
  quell::log::error("standard output: what this command printed cannot be written (a full disk, or a closed output?)");
  return code == 0 ? static_cast<int>(quell::Exit::machine) : code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return with_output(run(argc, argv));
  } catch (const quell::Error& problem) {
    quell::log::error(problem.what());
    return static_cast<int>(problem.exit());
  } catch (const std::bad_alloc&) {
    quell::log::error("memory: not enough for this command");
    return static_cast<int>(quell::Exit::machine);
  } catch (const std::exception& problem) {
    quell::log::error(std::string("a bug of ours: ") + problem.what());
    return static_cast<int>(quell::Exit::bug);
  }
}
