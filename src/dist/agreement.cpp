#include "dist/agreement.h"

#include "base/log.h"
#include "base/text.h"

namespace quell {
namespace {

// Types that are caught apart from those that they are of.
constexpr char stopped = 'S', unreadable = 'U', plain = 'E';

[[noreturn]] void throw_again(char kind, Exit exit, const std::string& message) {
  if (kind == stopped) throw Stopped();
  if (kind == unreadable) throw UnreadableData(message);
  switch (exit) {
    case Exit::usage: throw UsageError(message);
    case Exit::data: throw DataError(message);
    case Exit::checkpoint: throw CheckpointError(message);
    case Exit::numerics: throw NumericsError(message);
    case Exit::peer: throw PeerError(message);
    case Exit::machine: throw MachineError(message);
    case Exit::bug: throw Bug(message);
    default: throw Error(exit, message);
  }
}

}  // namespace

// "E3 the message": the type, the exit code, and what was said.
void Attempt::keep(const Error& problem) {
  problem_ = std::current_exception();
  const char kind = dynamic_cast<const Stopped*>(&problem) != nullptr          ? stopped
                    : dynamic_cast<const UnreadableData*>(&problem) != nullptr ? unreadable
                                                                               : plain;
  said_ = cat(std::string(1, kind), static_cast<int>(problem.exit()), " ", problem.what());
}

void Attempt::settle(const World& world) const {
  const World::Said first = world.first_said(said_);
  if (first.rank < 0) return;
  if (first.rank == world.rank()) std::rethrow_exception(problem_);
  if (!world.is_first() && first.text[0] != stopped) log::mute();
  const size_t space = first.text.find(' ');
  const auto exit = static_cast<Exit>(std::stoi(first.text.substr(1, space - 1)));
  throw_again(first.text[0], exit, cat("rank ", first.rank, ": ", first.text.substr(space + 1)));
}

}  // namespace quell
