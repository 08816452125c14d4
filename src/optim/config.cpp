// The look-up of a role's settings, and what cannot be said of one schedule key alone.
#include "optim/config.h"

#include "base/error.h"
#include "base/text.h"

namespace quell {

const GroupConfig& GroupsConfig::of(Role role) const {
  switch (role) {
    case Role::matrix: return matrix;
    case Role::embedding: return embedding;
    case Role::output: return output;
    case Role::norm_weight: return norm_weight;
    case Role::qk_norm_weight: return qk_norm_weight;
    case Role::scale: return scale;
    case Role::bias: return bias;
  }
  throw Bug("optimizer.groups: a role without settings");
}

GroupConfig& GroupsConfig::of(Role role) { return const_cast<GroupConfig&>(std::as_const(*this).of(role)); }

void check(Problems& problems, const ScheduleConfig& config) {
  const bool ends = config.kind != ScheduleKind::constant && config.kind != ScheduleKind::inverse_sqrt;
  if (config.decay_steps && config.kind != ScheduleKind::wsd) {
    problems.add("decay_steps", cat("kind ", name_of(config.kind), " has no final decay of its own length"),
                 "leave it out, or set kind: wsd");
  }
  if (!config.steps) return;
  const int64_t steps = *config.steps;
  if (!ends) {
    problems.add("steps", cat("kind ", name_of(config.kind), " has no end"),
                 "leave it out, or set kind: cosine, linear or wsd");
  } else if (config.warmup >= steps) {
    problems.add("warmup", cat(config.warmup, " is not below steps ", steps),
                 cat("at most ", steps - 1, ", so that something is left to decay over"));
  } else if (config.kind == ScheduleKind::wsd && config.decay_steps && *config.decay_steps > steps - config.warmup) {
    problems.add("decay_steps", cat(*config.decay_steps, " and warmup ", config.warmup, " exceed steps ", steps),
                 cat("at most ", steps - config.warmup));
  }
}

}  // namespace quell
