#include "tools/verify_resume.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

extern char** environ;

namespace quell {
namespace {

// This program as a child, whose words go to a file.
class Child {
 public:
  Child(const std::vector<std::string>& arguments, const std::string& said) {
    std::vector<std::string> words{"quell"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, said.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    const int problem = posix_spawn(&child_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (problem != 0) throw MachineError("verify-resume: a second process cannot be started");
  }
  ~Child() { end(SIGKILL); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  bool has_ended() {
    if (child_ > 0 && ::waitpid(child_, &status_, WNOHANG) == child_) child_ = -1;
    return child_ < 0;
  }
  void end(int signal) {
    if (child_ <= 0) return;
    ::kill(child_, signal);
    wait();
  }
  int wait() {
    if (child_ > 0) ::waitpid(child_, &status_, 0);
    child_ = -1;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  pid_t child_ = -1;
  int status_ = 0;
};

constexpr const char* own_keys[] = {"steps", "checkpoint.every", "resume", "time"};

std::vector<std::string> arguments_of(const VerifyResumeOptions& options, const std::string& folder) {
  std::vector<std::string> words{"train"};
  words.insert(words.end(), options.run.begin(), options.run.end());
  for (const std::string& word : {cat("--run"), folder, cat("--quiet")}) words.push_back(word);
  // Saves often enough that some fall between kills.
  const std::string values[] = {cat(options.steps), cat(std::max<int64_t>(1, options.steps / 12)), "auto", "none"};
  for (size_t i = 0; i < std::size(own_keys); ++i) words.push_back(cat("--set=", own_keys[i], "=", values[i]));
  return words;
}

void require_other_keys(const VerifyResumeOptions& options) {
  for (size_t i = 1; i < options.run.size(); ++i) {
    const std::string& word = options.run[i];
    const std::string override_text = word.starts_with("--set=") ? word.substr(6) : word;
    for (const char* key : own_keys) {
      if (!override_text.starts_with(cat(key, "="))) continue;
      throw UsageError(cat(override_text, ": verify-resume sets ", key, " itself", key == own_keys[0] ? "; give --steps N" : ""));
    }
  }
}

bool save_is_under_way(const std::string& folder) {
  const std::string checkpoints = folder + "/checkpoints";
  if (!files::is_folder(checkpoints)) return false;
  for (const std::string& name : files::list(checkpoints)) {
    if (name.starts_with(".step-") && name.find(".tmp-") != std::string::npos) return true;
  }
  return false;
}

// Rows without the clock.
std::vector<Json> rows_of(const std::string& folder) {
  const std::string path = folder + "/metrics.jsonl";
  std::istringstream lines(files::read(path));
  std::vector<Json> rows;
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(parse_json(line, path));
    for (const char* clock : {"time", "tokens_per_s", "images_per_s"}) rows.back().erase(clock);
  }
  return rows;
}

// "" where they are the same.
std::string first_difference(const std::vector<Json>& a, const std::vector<Json>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) continue;
    for (const auto& [key, value] : a[i].items()) {
      if (!b[i].contains(key) || b[i][key] != value) {
        return cat("row ", i + 1, " (step ", a[i].value("step", 0), "): ", key, " is ", value.dump(), " straight, ", b[i].contains(key) ? b[i][key].dump() : "not there", " resumed");
      }
    }
    return cat("row ", i + 1, ": the resumed run has more numbers");
  }
  return a.size() == b.size() ? "" : cat(a.size(), " rows straight, ", b.size(), " resumed");
}

struct Kills {
  int64_t at_random = 0, in_a_save = 0;
};

struct Pace {
  double start_seconds = 0, seconds = 0;  // until the first row of metrics, and in all
};

Pace run_straight(const VerifyResumeOptions& options, const std::string& folder, const std::string& said) {
  Pace pace;
  const Timer timer;
  Child child(arguments_of(options, folder), said);
  while (!child.has_ended()) {
    if (!files::exists(folder + "/metrics.jsonl")) pace.start_seconds = timer.seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (child.wait() != 0) throw MachineError(cat("the straight run fails:\n", files::read(said)));
  pace.seconds = timer.seconds();
  return pace;
}

// A kill in a save leaves what was saved before, one at random some of the way: drawn so that the way lasts for all of them.
Kills run_with_kills(const VerifyResumeOptions& options, const std::string& folder, const std::string& said, const Pace& pace) {
  Kills kills;
  std::mt19937_64 draw(options.seed);
  const auto arguments = arguments_of(options, folder);
  const auto most_kills = static_cast<double>(std::max<int64_t>(1, options.kills));
  const double longest = std::min(pace.seconds, pace.start_seconds + 2 * (pace.seconds - pace.start_seconds) / most_kills);
  for (int64_t i = 0; i < options.kills; ++i) {
    const double moment = std::uniform_real_distribution<double>(0, longest)(draw);
    const bool wait_for_save = i % 2 == 1;
    const Timer timer;
    Child child(arguments, said);
    const auto is_due = [&] { return wait_for_save ? save_is_under_way(folder) : timer.seconds() >= moment; };
    while (!child.has_ended() && !is_due()) std::this_thread::sleep_for(std::chrono::microseconds(500));  // a save takes some milliseconds
    if (child.has_ended()) break;  // it came to its end before
    child.end(SIGKILL);
    ++(wait_for_save ? kills.in_a_save : kills.at_random);
    const std::string when = wait_for_save ? "in a save" : human_seconds(moment) + " after its start";
    options.progress.note(cat("kill ", i + 1, " of ", options.kills, ": ", when));
  }
  if (Child(arguments, said).wait() != 0) throw MachineError(cat("the killed run does not go on to its end:\n", files::read(said)));
  return kills;
}

}  // namespace

Answer verify_resume(const VerifyResumeOptions& options) {
  const std::string straight = options.folder + "/straight", killed = options.folder + "/killed", said = options.folder + "/said.txt";
  require_other_keys(options);
  if (!files::make_new_folder(options.folder)) throw UsageError(options.folder + ": exists already");
  options.progress.note(cat("straight: ", options.steps, " steps"));
  const Kills kills = run_with_kills(options, killed, said, run_straight(options, straight, said));

  const std::vector<Json> rows = rows_of(straight);
  const std::string row = first_difference(rows, rows_of(killed));
  const Answer tensors = diff_checkpoints(straight, killed);
  const Manifest manifest = checkpoint_at(straight).manifest;
  size_t count = 0;
  for (const ManifestFile& file : manifest.files) count += file.tensors.size();
  Answer answer{"", Json{{"steps", manifest.step}, {"kills", kills.at_random}, {"kills_in_a_save", kills.in_a_save}, {"rows", rows.size()}, {"tensors", count},
                         {"content", manifest.content_digest()}}, row.empty() && tensors.yes};
  answer.text = cat(manifest.step, " steps straight, and with ", kills.at_random, " kills at random moments and ", kills.in_a_save, " in a save\n");
  if (answer.yes) {
    answer.text += cat("the same: ", rows.size(), " rows of metrics, ", count, " tensors, every bit (content ", manifest.content_digest(), ")\n");
    files::remove_all(options.folder);
  } else {
    answer.text += cat("not the same", row.empty() ? "" : ": " + row, "\n", tensors.yes ? "" : tensors.text, "both runs are in ", options.folder, "\n");
    answer.json["first_difference"] = row.empty() ? tensors.text : row;
  }
  return answer;
}

}  // namespace quell
