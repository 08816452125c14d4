// When a run is saved and what is kept: the section `checkpoint` of the run file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/describe.h"

namespace quell {

enum class Verify { none, sizes, full };
template <>
inline constexpr auto choices<Verify> =
    std::array{Choice{Verify::none, "none", "a save counts as soon as it is renamed into place"},
               Choice{Verify::sizes, "sizes", "files, their sizes and headers are looked at again"},
               Choice{Verify::full, "full", "every byte is read back from the disk and hashed"}};

enum class OnSaveError { go_on, stop };
template <>
inline constexpr auto choices<OnSaveError> =
    std::array{Choice{OnSaveError::go_on, "continue", "training goes on, the failure is said, and the next save tries again"},
               Choice{OnSaveError::stop, "stop", "the run ends with exit code 7"}};

struct CheckpointConfig {
  int64_t every = 1000;
  int64_t keep_last = 2;
  Optional<int64_t> keep_every;
  Optional<std::string> keep_best;
  Verify verify = Verify::full;
  OnSaveError on_save_error = OnSaveError::go_on;
};
template <class V>
void describe(V& v, CheckpointConfig& c) {
  v.field("every", c.every, help("Steps between saves; 0: only at the end and where the run is stopped.").unit("steps").at_least(0));
  v.field("keep_last", c.keep_last, help("The newest checkpoints that stay; never fewer than two, since the newest may be the broken one.").at_least(2));
  v.field("keep_every", c.keep_every, help("Checkpoints of these steps stay for ever: every multiple of it.").unit("steps").at_least(1));
  v.field("keep_best", c.keep_best, help("The checkpoint with the best value of this number of an evaluation stays too: the smallest <set>.loss, the "
                                         "largest <set>.accuracy or <set>.exact_match."));
  v.field("verify", c.verify, help("What is done before a save counts as one."));
  v.field("on_save_error", c.on_save_error, help("What happens where a save fails: a full disk, for one."));
}

void check(Problems& problems, const CheckpointConfig& config);

// Whether more of the number is better; nothing where it is none that a best is kept of.
std::optional<bool> larger_is_better(const std::string& metric);

}  // namespace quell
