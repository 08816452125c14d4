// A run: everything that trains, owned in one place and built in one visible order. It holds no behaviour of its own; an update
// is train/step, when things happen is train/loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/progress.h"
#include "data/prefetch.h"
#include "data/sources.h"
#include "dist/gradients.h"
#include "dist/world.h"
#include "nn/model.h"
#include "optim/adamw.h"
#include "optim/ema.h"
#include "stability/finite.h"
#include "tensors/arena.h"
#include "tensors/parameter.h"
#include "train/config.h"
#include "train/objective.h"
#include "train/sources.h"

namespace quell {

// How this start of the run differs from the run file.
struct RunOptions {
  int64_t overfit = 0;  // train on the first N samples over and over; 0: on all
  bool resumes = false; // its weights will come from a checkpoint: model.init.from need not be there any more
  Progress progress;    // scanning data
  World world = {};
  Timer since_start = {};  // of which `time` is counted: what came before the run is built counts too
};

// Steps by the smallest of steps, tokens and epochs; 0 where none is given.
int64_t planned_steps(const RunConfig& config, int64_t epoch_samples);

struct Run {
  Run(RunConfig resolved, const RunOptions& options);
  Run(Run&&) = delete;  // its parts refer to each other

  Timer since_start;
  RunConfig config;  // vocabulary or classes, and steps, filled in
  World world;
  Source source;
  std::vector<EvaluationData> evaluations;
  ParameterList parameters;
  Model model;
  Arena arena;
  AdamW optimizer;
  std::optional<Ema> ema;
  GradientReducer reducer;
  Objective objective;
  FinitePolicy finite;

  // Where it is: steps made or left out as bad, and after how many of them the last evaluation was (-1: none yet).
  int64_t step = 0, evaluated = -1;
  // The plan: 0 where only time ends the run.
  int64_t steps = 0;
  int64_t batch = 0;        // samples of a step over the whole world
  int64_t micro_batch = 0;  // samples of one rank's micro-batch
  int64_t overfit = 0;

  // The micro-batches of one step on this rank. From prefetch(), when that has begun, in order.
  std::vector<Batch> batches(int64_t of_step);
  std::vector<Batch> reread(int64_t of_step) const;  // the same again, whatever the prefetcher is doing
  void begin_prefetch(int64_t first_step);
  Forward forward(const Batch& batch, bool training) const;
  // What speed is counted in: the tokens of text, or images.
  const char* items() const;
  int64_t items_per_step() const;

 private:
  HostBatch read(int64_t of_step, int64_t part) const;
  std::unique_ptr<Prefetch> prefetch_;
};

}  // namespace quell
