// `quell plan`: what a run will need, from its configuration alone. Opens no images and no tokens; where a token folder's side-car
// or a raw file's size is there, passes over the data are counted too, and where it is not, they are left out without an error.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tools/fit.h"
#include "train/memory.h"

namespace quell {

struct PlanOptions {
  std::string memory;  // "24GB"; "": this machine's limit
  std::string speed;   // FLOP/s of a rank like "10T"; "": probed on this machine
  int64_t world = 1;   // ranks
  std::string bandwidth;  // bytes a second from each rank like "10GB"; "": not known
};

struct Plan {
  // The model.
  int64_t parameters = 0, trained = 0;
  std::vector<std::pair<std::string, int64_t>> parts;  // in order of first use; together all parameters
  // Arithmetic, forward and backward.
  std::string item;  // token or image
  double flops_per_item = 0, flops_per_step = 0;  // of all ranks
  // The run; 0 where its end is time alone, or epochs of data whose size is not known.
  int64_t batch = 0, items_per_step = 0, steps = 0;
  std::optional<int64_t> epoch_samples;
  double speed = 0, seconds = 0;  // FLOP/s; of all steps
  bool probed = false;
  // Several ranks: what each sends in a step, at least, as the sum of gradients goes round in a ring; and how long that takes.
  int64_t world = 1;
  double sent_per_step = 0, bandwidth = 0, send_seconds = 0;  // bandwidth 0: not known
  // Memory at the peak of the first rank, which also saves; and disk.
  std::vector<MemoryClass> memory;
  double limit = 0;
  std::string limit_text;
  std::vector<FittingChange> changes;  // where it does not fit
  double weights_on_disk = 0, moments_on_disk = 0;

  double samples() const { return static_cast<double>(steps) * static_cast<double>(batch); }
  double items() const { return static_cast<double>(steps) * static_cast<double>(items_per_step); }
  double over() const { return total_of(memory) - limit; }  // above 0: it does not fit
};

// Throws UsageError for a vocabulary or number of classes that is left to the data, for options that are no quantity, and for a world whose
// ranks do not divide the batch.
Plan make_plan(const RunConfig& config, const PlanOptions& options);
std::string text_of(const Plan& plan);  // lines of at most 80 columns
Json json_of(const Plan& plan);         // bytes, FLOP and seconds without prefixes; null for what is not known

// "24GB", "22.4 GiB", "800000000": bytes. `option` begins the error.
double parse_bytes(const std::string& text, const std::string& option);
// "10T", "3.5e12": a number with k, M, G, T or P.
double parse_count(const std::string& text, const std::string& option);

}  // namespace quell
