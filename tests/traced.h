// The program under ptrace, killed where it enters a chosen system call: the n-th that touches a file whose path holds a given part.
// Calls are counted over all of its threads in the order in which they come.
#pragma once

#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <climits>
#include <csignal>
#include <string>
#include <vector>

namespace quell::testing {

class Traced {
 public:
  struct Outcome {
    int code = 0;   // as a shell gives it
    int calls = 0;  // that matched
    std::vector<std::string> names;  // of those
  };

  // Runs in `folder` until its end or until it enters matching call `at`, counted from 0.
  static Outcome run(const std::string& folder, std::vector<std::string> arguments, const std::string& part, int at = INT_MAX) {
    const pid_t child = begin(folder, std::move(arguments));
    Outcome outcome;
    while (true) {
      int status = 0;
      const pid_t thread = ::waitpid(-1, &status, __WALL);
      REQUIRE(thread > 0);
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        if (thread != child) continue;
        outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return outcome;
      }
      const char* name = entered_call(thread, status, part);
      if (name != nullptr && outcome.calls++ == at) ::kill(child, SIGKILL);
      if (name != nullptr) outcome.names.push_back(name);
      ::ptrace(PTRACE_SYSCALL, thread, nullptr, signal_to_deliver(thread, child, status));
    }
  }

 private:
  struct Call {
    long number;
    const char* name;
    int file, path;  // which argument is a descriptor, which is a path; -1: none
  };
  // Those that change the disk: to be killed at a read is to be killed at the change that comes next.
  static constexpr std::array calls{
      Call{SYS_openat, "openat", 0, 1},     Call{SYS_mkdirat, "mkdirat", 0, 1}, Call{SYS_renameat2, "renameat2", 0, 1},
      Call{SYS_unlinkat, "unlinkat", 0, 1}, Call{SYS_write, "write", 0, -1},    Call{SYS_pwrite64, "pwrite64", 0, -1},
      Call{SYS_writev, "writev", 0, -1},    Call{SYS_pwritev, "pwritev", 0, -1}, Call{SYS_copy_file_range, "copy_file_range", 2, -1},
      Call{SYS_fsync, "fsync", 0, -1},      Call{SYS_fdatasync, "fdatasync", 0, -1}, Call{SYS_ftruncate, "ftruncate", 0, -1},
      Call{SYS_renameat, "renameat", 0, 1}, Call{SYS_linkat, "linkat", 0, 1},   Call{SYS_truncate, "truncate", -1, 0},
#ifdef SYS_open  // only older machines have these
      Call{SYS_open, "open", -1, 0},        Call{SYS_mkdir, "mkdir", -1, 0},    Call{SYS_rename, "rename", -1, 0},
      Call{SYS_unlink, "unlink", -1, 0},    Call{SYS_rmdir, "rmdir", -1, 0},
#endif
  };

  static pid_t begin(const std::string& folder, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "quell");
    std::vector<char*> words;
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const std::string said = folder + "/traced.txt";
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const int err = open(said.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      if (err < 0 || dup2(err, 2) < 0 || chdir(folder.c_str()) != 0) _exit(99);
      if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(98);  // else nobody would see it, and each case would pass
      ::raise(SIGSTOP);
      execv(QUELL_PROGRAM, words.data());
      _exit(99);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, __WALL) == child);
    REQUIRE(WIFSTOPPED(status));
    REQUIRE(::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) == 0);
    ::ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    return child;
  }

  // The name of the call that `thread` enters now, where it touches a path that holds `part`.
  static const char* entered_call(pid_t thread, int status, const std::string& part) {
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) return nullptr;
    __ptrace_syscall_info info;
    if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY) return nullptr;
    for (const Call& call : calls) {
      if (static_cast<long>(info.entry.nr) != call.number) continue;
      const bool by_file = call.file >= 0 && file_of(thread, static_cast<int>(info.entry.args[call.file])).find(part) != std::string::npos;
      const bool by_path = call.path >= 0 && text_at(thread, info.entry.args[call.path]).find(part) != std::string::npos;
      return by_file || by_path ? call.name : nullptr;
    }
    return nullptr;
  }

  static std::string file_of(pid_t thread, int descriptor) {
    char path[4096];
    const std::string link = "/proc/" + std::to_string(thread) + "/fd/" + std::to_string(descriptor);
    const ssize_t count = ::readlink(link.c_str(), path, sizeof path);
    return count < 0 ? "" : std::string(path, static_cast<size_t>(count));
  }
  static std::string text_at(pid_t thread, uint64_t address) {
    char text[1024] = {};
    const int memory = ::open(("/proc/" + std::to_string(thread) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
    [[maybe_unused]] const ssize_t count = ::pread(memory, text, sizeof text - 1, static_cast<off_t>(address));
    ::close(memory);
    return text;
  }

  // What is not of the tracing itself: a thread begins with a stop.
  static long signal_to_deliver(pid_t thread, pid_t child, int status) {
    const int signal = WSTOPSIG(status);
    const bool is_event = signal == (SIGTRAP | 0x80) || status >> 16 != 0 || signal == SIGTRAP;
    return is_event || (signal == SIGSTOP && thread != child) ? 0 : signal;
  }
};

}  // namespace quell::testing
