#include "checkpoint/saver.h"

#include <system_error>

#include "base/clock.h"
#include "base/error.h"
#include "base/files.h"
#include "base/machine.h"
#include "base/text.h"
#include "checkpoint/commit.h"
#include "checkpoint/folder.h"

namespace quell {
namespace {

// A folder stays only once the one around it is synced, and that one too. Those around the run's need not be open to us.
void make_durable(const std::string& folder) {
  files::make_folders(folder);
  files::sync_folder(folder + "/..");
  for (const char* around : {"/../..", "/../../.."}) {
    try {
      files::sync_folder(folder + around);
    } catch (const MachineError&) {
    }
  }
}

// Of floating-point types; counted by bits, since this thread calls no operator.
template <class Bits>
bool all_finite(const StagedTensor& tensor, Bits exponent) {
  const Bits* bits = reinterpret_cast<const Bits*>(tensor.at);
  const uint64_t count = tensor.bytes / sizeof(Bits);
  bool finite = true;
  for (uint64_t i = 0; i < count; ++i) finite &= (bits[i] & exponent) != exponent;
  return finite;
}

bool is_finite(const StagedTensor& tensor) {
  if (tensor.type == at::kFloat) return all_finite<uint32_t>(tensor, 0x7F800000u);
  return tensor.type != at::kDouble || all_finite<uint64_t>(tensor, 0x7FF0000000000000u);
}

std::string not_finite(const std::vector<StagedFile>& files) {
  for (const StagedFile& file : files) {
    for (const StagedTensor& tensor : file.tensors) {
      if (!is_finite(tensor)) return cat(tensor.name, " of ", file.name, " holds numbers that are not finite");
    }
  }
  return "";
}

}  // namespace

Saver::~Saver() {
  if (writer_.joinable()) writer_.join();
}

void Saver::begin(const State& state, Manifest manifest, std::function<void()> before) {
  require(!writer_.joinable(), "saver: a save began before the last one's result was asked for");
  manifest.integers = state.integers;
  manifest.numbers = state.numbers;
  written_ = false;
  result_ = {.step = manifest.step, .path = {}, .problem = {}, .seconds = 0};
  auto work = [this, files = staging_.take(state), manifest = std::move(manifest), before = std::move(before)] {
    machine::lower_thread_priority();
    write(files, manifest, before);
    written_ = true;
  };
  try {
    writer_ = std::thread(std::move(work));
  } catch (const std::system_error& problem) {
    throw MachineError(cat("a thread that saves cannot be started: ", problem.what()));
  }
}

std::optional<SaveResult> Saver::result(bool wait) {
  if (!writer_.joinable() || (!wait && !written_)) return std::nullopt;
  writer_.join();
  return result_;
}

void Saver::write(const std::vector<StagedFile>& files, const Manifest& manifest, const std::function<void()>& before) {
  const Timer timer;
  try {
    result_.problem = not_finite(files);
    result_.not_finite = !result_.problem.empty();
    if (result_.not_finite) return;
    if (!is_durable_) make_durable(folder_);
    is_durable_ = true;
    require_space(folder_, files);
    before();
    result_.path = commit(folder_, files, manifest, config_.verify);
    verified_.insert(manifest.step);
    retain(folder_, manifest.run, config_, verified_);
  } catch (const std::exception& problem) {  // of memory too: nothing of a save may end the process
    result_.problem = problem.what();
  }
  result_.seconds = timer.seconds();
}

}  // namespace quell
