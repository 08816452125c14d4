#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/error.h"

namespace quell::log {
namespace {

// Leaked on purpose: other threads may still log while the process ends.
spdlog::logger& logger() {
  static spdlog::logger* made = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_pattern("%v");
    auto* fresh = new spdlog::logger("quell", sink);
    fresh->set_level(spdlog::level::info);
    fresh->flush_on(spdlog::level::info);
    return fresh;
  }();
  return *made;
}

}  // namespace

void info(std::string_view message) { logger().info("{}", message); }
void always(std::string_view message) { logger().error("{}", message); }
void warn(std::string_view message) { logger().warn("warning: {}", message); }
void error(std::string_view message) { logger().error("error: {}", message); }

void only_errors() { logger().sinks().front()->set_level(spdlog::level::err); }
void mute() { logger().sinks().front()->set_level(spdlog::level::off); }

void set_quiet(bool quiet) { logger().sinks().front()->set_level(quiet ? spdlog::level::warn : spdlog::level::info); }

void also_to_file(const std::string& path) {
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path, false);
    sink->set_pattern("%Y-%m-%d %H:%M:%S.%e %v");
    logger().sinks().push_back(sink);
  } catch (const spdlog::spdlog_ex& problem) {
    throw MachineError(path + ": cannot be opened as the run's log: " + problem.what());
  }
}

}  // namespace quell::log
