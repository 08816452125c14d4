#include "data/staged_folder.h"

#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace quell {
namespace {

const char* const lock_name = "/lock";
const char* const made_name = "/made";

// Whether `name` is `prefix`PID-N.
bool is_ours(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return false;
  name.remove_prefix(prefix.size());
  const size_t dash = name.find('-');
  const auto is_number = [](std::string_view s) {
    return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  return dash != std::string_view::npos && is_number(name.substr(0, dash)) && is_number(name.substr(dash + 1));
}

// The lock goes last: if this is cut short, the rest can still be told from a living one's. It is let go before its file is
// removed, because NFS keeps a removed file in its folder for as long as it is open.
void remove_holder(const std::string& holder, std::optional<files::Lock>& lock) {
  files::remove_all(holder + made_name);
  lock.reset();
  files::remove_all(holder);
}

void remove_leftovers(const std::string& out, const Progress& progress) {
  const size_t slash = out.rfind('/');
  const std::string parent = slash == std::string::npos ? "" : out.substr(0, slash + 1);
  const std::string prefix = out.substr(parent.size()) + ".tmp-";
  const std::string listed = parent.empty() ? "." : parent;
  if (!files::is_folder(listed)) return;
  for (const std::string& name : files::list(listed)) {
    if (!is_ours(name, prefix)) continue;
    const std::string holder = parent + name;
    auto lock = files::Lock::take_over(holder + lock_name);
    if (!lock) continue;  // its maker lives, or it is none of ours
    try {
      remove_holder(holder, lock);
      progress.note(holder + ": removed; whoever made it no longer works on it");
    } catch (const MachineError& problem) {
      progress.note(cat("nobody works on it any more, but ", problem.what()));
    }
  }
}

}  // namespace

StagedFolder::StagedFolder(std::string out, const Progress& progress) : out_(std::move(out)) {
  remove_leftovers(out_, progress);
  for (int n = 0; !lock_; ++n) {
    holder_ = cat(out_, ".tmp-", ::getpid(), "-", n);
    if (!files::make_new_folder(holder_)) continue;
    try {
      lock_ = files::Lock::make(holder_ + lock_name);
    } catch (const MachineError&) {
      files::remove_all(holder_);
      throw;
    }
  }
}

StagedFolder::~StagedFolder() {
  if (holder_.empty()) return;
  try {
    remove_holder(holder_, lock_);
  } catch (const MachineError&) {
    // The error that led here is the one to report.
  }
}

std::string StagedFolder::path() const { return holder_ + made_name; }

void StagedFolder::commit() {
  files::sync_folder(path());
  if (!files::rename_new(path(), out_)) throw UsageError(out_ + ": was made by another program in the meantime");
  remove_holder(holder_, lock_);
  holder_.clear();
}

}  // namespace quell
