// A small run file of the config tests' own: every type a field may have, one check(), one derive(), a variant, named
// sections.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "config/describe.h"
#include "config/load.h"

namespace quell {

enum class ExampleKind { none, layernorm, rmsnorm };
template <>
inline constexpr auto choices<ExampleKind> =
    std::array{Choice{ExampleKind::none, "none"}, Choice{ExampleKind::layernorm, "layernorm", "with a mean"},
               Choice{ExampleKind::rmsnorm, "rmsnorm", "without"}};

namespace example {

struct Norm {
  ExampleKind kind = ExampleKind::rmsnorm;
  double eps = 1e-6;
  bool bias = false;
  bool operator==(const Norm&) const = default;
};
template <class V>
void describe(V& v, Norm& c) {
  v.field("kind", c.kind, help("The norm."));
  v.field("eps", c.eps, help("Added under the root.").above(0));
  v.field("bias", c.bias, help("layernorm only."));
}
inline void check(Problems& problems, const Norm& c) {
  if (c.bias && c.kind != ExampleKind::layernorm)
    problems.add("bias", "only layernorm has a bias", "set norm.kind to layernorm");
}

struct Model {
  int64_t width = 128;
  int64_t layers = 4;
  int64_t heads = 4;
  int64_t head_width = 0;
  Norm norm;
  Optional<ExampleKind> preset;
  bool operator==(const Model&) const = default;
};
template <class V>
void describe(V& v, Model& c) {
  v.field("width", c.width, help("Width of the residual stream.").at_least(1));
  v.field("layers", c.layers, help("Number of blocks.").at_least(1).at_most(1000));
  v.field("heads", c.heads, help("Query heads.").at_least(1));
  v.derive([&c] { c.head_width = c.width / c.heads; });
  v.field("head_width", c.head_width, help("Width of a head; by itself width / heads.").at_least(1));
  v.field("norm", c.norm, help("Norms."));
  v.field("preset", c.preset, help("A published scheme."));
}
inline void check(Problems& problems, const Model& c) {
  if (c.width % c.heads != 0)
    problems.add("heads", cat(c.heads, " does not divide model.width ", c.width), "choose a divisor");
}

struct Tokens {
  static constexpr const char* kind_name = "tokens";
  std::string train;
  int64_t batch = 8;
  bool operator==(const Tokens&) const = default;
};
template <class V>
void describe(V& v, Tokens& c) {
  v.field("train", c.train, help("A folder."));
  v.field("batch", c.batch, help("Samples of a step.").unit("samples").at_least(1));
}
struct Images {
  static constexpr const char* kind_name = "images";
  std::string folder = "data/images";
  int64_t batch = 64;
  int64_t size = 224;
  bool operator==(const Images&) const = default;
};
template <class V>
void describe(V& v, Images& c) {
  v.field("folder", c.folder, help("A folder of images."));
  v.field("batch", c.batch, help("Samples of a step.").unit("samples").at_least(1));
  v.field("size", c.size, help("Side of a square.").unit("pixels").at_least(1));
}

struct Set {
  std::string name;
  std::string data;
  bool operator==(const Set&) const = default;
};
template <class V>
void describe(V& v, Set& c) {
  v.field("name", c.name, help("Prefix of its metrics."));
  v.field("data", c.data, help("A folder."));
}

struct Evaluate {
  std::vector<Set> sets;
  int64_t every = 300;
  bool operator==(const Evaluate&) const = default;
};
template <class V>
void describe(V& v, Evaluate& c) {
  v.field("sets", c.sets, help("What is evaluated."));
  v.field("every", c.every, help("Steps between evaluations.").unit("steps").at_least(0));
}

struct Optimizer {
  double lr = 1e-3;
  std::array<double, 2> betas{0.9, 0.95};
  double weight_decay = 0.1;
  std::vector<std::string> freeze;
  std::vector<int64_t> milestones;
  std::vector<bool> flags;
  bool operator==(const Optimizer&) const = default;
};
template <class V>
void describe(V& v, Optimizer& c) {
  v.field("lr", c.lr, help("Peak learning rate.").at_least(0));
  v.field("betas", c.betas, help("Decay rates of the moments.").at_least(0).below(1));
  v.field("weight_decay", c.weight_decay, help("Decay of matrices.").at_least(0).at_most(1));
  v.field("freeze", c.freeze, help("Patterns of parameters that are not trained."));
  v.field("milestones", c.milestones, help("Steps at which nothing happens.").suffixes());
  v.field("flags", c.flags, help("Nothing at all."));
}

struct Run {
  std::string name;
  Optional<std::string> from;
  Optional<int64_t> steps;
  Optional<int64_t> tokens;
  Optional<double> time;
  int64_t wait = 90;
  Optional<int64_t> threads;
  Model model;
  std::variant<Tokens, Images> data;
  std::map<std::string, Norm> norms;
  NamedMap<Model> variants;
  Evaluate evaluate;
  Optimizer optimizer;
};
template <class V>
void describe(V& v, Run& c) {
  v.field("name", c.name, help("The run's name."));
  v.field("from", c.from, help("Saved weights."));
  v.field("steps", c.steps, help("Steps.").unit("steps").at_least(1));
  v.field("tokens", c.tokens, help("Training tokens.").unit("tokens").suffixes().at_least(1));
  v.field("time", c.time, help("Stops the run after this time.").duration().above(0));
  v.field("wait", c.wait, help("Time to wait.").duration().at_least(0));
  v.field("threads", c.threads, help("CPU threads.").absent("auto").at_least(1).at_most(1024));
  v.field("model", c.model, help("The network."));
  v.field("data", c.data, help("What is trained on."));
  v.field("norms", c.norms, help("Named norms."));
  v.derive([&c] { c.variants.fallback = c.model; });
  v.field("variants", c.variants, help("Models that differ."));
  v.field("evaluate", c.evaluate, help("What is evaluated."));
  v.field("optimizer", c.optimizer, help("The update rule."));
}

// What load() says of a text, or "" where it says nothing.
inline std::string complaint(const std::string& text, const std::vector<config::Override>& overrides = {}) {
  try {
    config::load<Run>(config::Source::from_text(text, "run.yaml", overrides));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}
inline Run loaded(const std::string& text, const std::vector<config::Override>& overrides = {}) {
  return config::load<Run>(config::Source::from_text(text, "run.yaml", overrides));
}

}  // namespace example
}  // namespace quell
