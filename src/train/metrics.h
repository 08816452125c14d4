// Rows of metrics.jsonl, the primary log (keys: DESIGN section 6): what was measured, as JSON. [layer] is an array, [layer][head]
// an array of arrays, null where a layer has none.
#pragma once

#include <vector>

#include "base/json.h"
#include "train/evaluate.h"
#include "train/health.h"
#include "train/step.h"

namespace quell {

// JSON has no NaN and no infinity; a string keeps the fact. null is kept for what does not exist.
Json number(double x);

// What a step computed, without the clock: "step", losses, "grad_norm" before clipping, "lr", what it has seen, and where `health`
// was given, that.
Json step_row(const Run& run, int64_t step, const StepResult& result, const HealthReport* health);

void add_losses(Json& row, const LossTotals& totals, const LossConfig& loss);
// `prefix` "" or "valid.": attention.* and heads.*.
void add_health(Json& row, const std::string& prefix, const HealthReport& health);
void add_weights(Json& row, const std::vector<LayerWeights>& layers);
void add_evaluation(Json& row, const Evaluation& evaluation);

}  // namespace quell
