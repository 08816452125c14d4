// The `optimizer` section: what may be written in YAML about the update rule, its schedule, clipping and parameter
// groups.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "config/describe.h"
#include "tensors/parameter.h"

namespace quell {

enum class OptimizerKind { adamw };
template <>
inline constexpr auto choices<OptimizerKind> = std::array{Choice{OptimizerKind::adamw, "adamw"}};

enum class Decay { coupled, independent };
template <>
inline constexpr auto choices<Decay> = std::array{
    Choice{Decay::coupled, "coupled", "w -= lr(t) * decay * w"},
    Choice{Decay::independent, "independent", "w -= f(t) * decay * w, f the schedule's factor in [0, 1]"}};

enum class ClipKind { none, norm, value };
template <>
inline constexpr auto choices<ClipKind> = std::array{
    Choice{ClipKind::none, "none"},
    Choice{ClipKind::norm, "norm", "scale the gradient so that its global norm is at most limit"},
    Choice{ClipKind::value, "value", "clamp every element to [-limit, limit]"}};

enum class ScheduleKind { constant, cosine, linear, wsd, inverse_sqrt };
template <>
inline constexpr auto choices<ScheduleKind> = std::array{
    Choice{ScheduleKind::constant, "constant"}, Choice{ScheduleKind::cosine, "cosine", "half a cosine from 1 to final"},
    Choice{ScheduleKind::linear, "linear", "a line from 1 to final"},
    Choice{ScheduleKind::wsd, "wsd", "1, then over the last decay_steps a line to final"},
    Choice{ScheduleKind::inverse_sqrt, "inverse_sqrt", "sqrt(warmup / step) after the warm-up, not below final"}};

struct ClipConfig {
  ClipKind kind = ClipKind::norm;
  double limit = 1.0;
};
template <class V>
void describe(V& v, ClipConfig& c) {
  v.field("kind", c.kind, help("How the reduced gradient is clipped."));
  v.field("limit", c.limit, help("The largest norm or absolute value.").above(0));
}

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::cosine;
  int64_t warmup = 0;
  double final = 0.1;
  Optional<int64_t> steps;  // absent: the run's plan
  Optional<int64_t> decay_steps;
};
template <class V>
void describe(V& v, ScheduleConfig& c) {
  v.field("kind", c.kind, help("Shape of the learning rate over the steps."));
  v.field("warmup", c.warmup, help("Steps of linear growth from 0 at the start.").unit("steps").at_least(0));
  v.field("final", c.final, help("Where a decaying schedule ends, as a fraction of the peak.").at_least(0).at_most(1));
  v.field("steps", c.steps, help("Where a decaying schedule ends; run: with the run's plan.")
              .unit("steps").absent("run").at_least(1));
  v.field("decay_steps", c.decay_steps, help("wsd only: length of the final decay; auto: a tenth of the steps.")
              .unit("steps").absent("auto").at_least(1));
}

struct GroupConfig {
  Optional<double> decay;  // absent: what the role has by itself
  double lr_factor = 1;
  Optional<double> clamp;  // values are kept in [-clamp, clamp] after each update
};
template <class V>
void describe(V& v, GroupConfig& c) {
  v.field("decay", c.decay, help("Weight decay; auto: optimizer.weight_decay for matrix, embedding and output, else 0.")
              .absent("auto").at_least(0));
  v.field("lr_factor", c.lr_factor, help("Factor of the learning rate.").at_least(0));
  v.field("clamp", c.clamp, help("Values are kept in [-clamp, clamp] after each update.").above(0));
}

struct GroupsConfig {
  GroupConfig matrix, embedding, output, norm_weight, qk_norm_weight, scale, bias;
  GroupConfig& of(Role role);
  const GroupConfig& of(Role role) const;
};
template <class V>
void describe(V& v, GroupsConfig& c) {
  v.field("matrix", c.matrix, help("Weights of linear maps inside blocks."));
  v.field("embedding", c.embedding, help("Token and position embeddings, also a tied one; class token, registers and the pool's query."));
  v.field("output", c.output, help("An untied output matrix, or the classifier."));
  v.field("norm_weight", c.norm_weight, help("Weights of norms other than QK-norm."));
  v.field("qk_norm_weight", c.qk_norm_weight, help("Weights of QK-norm."));
  v.field("scale", c.scale, help("Learned attention scales, and LayerScale."));
  v.field("bias", c.bias, help("Biases."));
}

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = 1e-3;
  std::array<double, 2> betas{0.9, 0.95};
  double eps = 1e-8;
  double weight_decay = 0.1;
  Decay decay = Decay::coupled;
  ClipConfig clip;
  ScheduleConfig schedule;
  GroupsConfig groups;
  std::vector<std::string> freeze;
};
template <class V>
void describe(V& v, OptimizerConfig& c) {
  v.field("kind", c.kind, help("The update rule."));
  v.field("lr", c.lr, help("Peak learning rate.").at_least(0).at_most(1e30));
  v.field("betas", c.betas, help("Decay rates of the first and second moment.").at_least(0).below(1));
  v.field("eps", c.eps, help("Added to the root of the second moment.").at_least(1e-30).at_most(1e9));
  v.field("weight_decay", c.weight_decay, help("Decay of matrices, embeddings and the output.").at_least(0).at_most(1e30));
  v.field("decay", c.decay, help("Whether decay follows the learning rate."));
  v.field("clip", c.clip, help("Gradient clipping."));
  v.field("schedule", c.schedule, help("The learning rate over the steps."));
  v.field("groups", c.groups, help("What differs by role."));
  v.field("freeze", c.freeze, help("Patterns (blocks.0.*) of parameters that are not trained."));
}

void check(Problems& problems, const ScheduleConfig& config);

}  // namespace quell
