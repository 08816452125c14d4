// Checks that need more than one key, and how the pattern assigns variants to layers.
#include "nn/transformer_config.h"

#include <regex>

#include "base/text.h"

namespace quell {
namespace {

struct PatternItem {
  std::string name;
  int64_t count = 1;
};

// "local x5" or "local".
Optional<PatternItem> parse_item(const std::string& text) {
  static const std::regex form("([A-Za-z_][A-Za-z0-9_]*)( +x([1-9][0-9]{0,3}))?");
  std::smatch match;
  if (!std::regex_match(text, match, form)) return std::nullopt;
  return PatternItem{match[1].str(), match[3].matched ? std::stoll(match[3].str()) : 1};
}

bool is_base(const std::string& name) { return name == "base"; }

// Positions that are added to what enters the first block, not turned in every attention.
bool is_added(PositionKind kind) { return kind == PositionKind::learned || kind == PositionKind::sincos; }

void check_pattern(Problems& problems, const TransformerConfig& c) {
  std::vector<std::string> names{"base"};
  for (const auto& [name, variant] : c.variants) names.push_back(name);
  for (size_t i = 0; i < c.pattern.size(); ++i) {
    const auto item = parse_item(c.pattern[i]);
    const std::string key = cat("pattern.", i);
    if (!item) {
      problems.add(key, cat("\"", c.pattern[i], "\" is not a variant with an optional count"), "like: local x5");
    } else if (!is_base(item->name) && !c.variants.contains(item->name)) {
      problems.add(key, cat("there is no variant ", item->name), "allowed: " + join(names, ", "));
    }
  }
  if (!c.variants.empty() && c.pattern.empty()) {
    problems.add("variants", "no layer takes them", "name them in model.pattern");
  }
  if (c.variants.contains("base")) problems.add("variants.base", "the name is taken by model.attention", "choose another name");
}

// What an attention block demands of the model around it; `at` is its path with a final dot, or "" for none.
void check_attention(Problems& problems, const TransformerConfig& c, const VariantConfig& block, const std::string& attention,
                     const std::string& position) {
  const QkNormOptions& norm = block.attention.qk_norm;
  if (norm.tie_qk && c.heads != c.kv() && (norm.weight == NormWeight::per_head || norm.weight == NormWeight::projection)) {
    problems.add(attention + "qk_norm.tie_qk",
                 cat("a ", name_of(norm.weight), " weight cannot be shared by ", c.heads, " query and ", c.kv(), " key heads"),
                 "set model.kv_heads to model.heads, or qk_norm.weight to shared");
  }
  const int64_t rotated = block.position.width.value_or(c.head());
  if (block.position.kind == PositionKind::rope && (rotated > c.head() || rotated % 2 != 0)) {
    problems.add(position + "width", cat("the rotary width ", rotated, " must be even and at most the head width ", c.head()),
                 "set it to an even number, or change model.head_width");
  }
}

}  // namespace

int64_t TransformerConfig::mlp_width() const {
  if (mlp.width) return *mlp.width;
  if (!is_gated(mlp.kind)) return 4 * width;
  return (width * 8 / 3 + 31) / 32 * 32;
}

void check(Problems& problems, const NormConfig& c) {
  if (c.kind == NormKind::none || c.kind == NormKind::l2) {
    problems.add("kind", cat(name_of(c.kind), " is for qk_norm only"), "allowed: layernorm, rmsnorm");
  }
  if (c.bias && c.kind != NormKind::layernorm) problems.add("bias", "only layernorm has a bias", "set norm.bias to false, or norm.kind to layernorm");
  if (c.bias && !c.weight) problems.add("bias", "a bias needs a weight", "set norm.weight to true");
  if (c.zero_centered && !c.weight) problems.add("zero_centered", "there is no weight to centre", "set norm.weight to true");
}

void check(Problems& problems, const TransformerConfig& c) {
  if (!c.head_width && c.width % c.heads != 0) {
    problems.add("heads", cat(c.heads, " does not divide model.width ", c.width), "choose a divisor, or set model.head_width");
  }
  if (c.kv() > c.heads || c.heads % c.kv() != 0) {
    problems.add("kv_heads", cat(c.kv(), " does not divide model.heads ", c.heads), "choose a divisor of model.heads");
  }
  check_attention(problems, c, {c.attention, c.position}, "attention.", "position.");
  for (const auto& [name, variant] : c.variants) {
    const std::string at = "variants." + name + ".";
    check_attention(problems, c, variant, at, at + "position.");
    const PositionKind kind = variant.position.kind;
    if (kind != c.position.kind && (is_added(kind) || is_added(c.position.kind))) {
      problems.add(at + "position.kind", cat(name_of(is_added(kind) ? kind : c.position.kind), " positions belong to the whole model"),
                   "set model.position.kind instead");
    }
  }
  check_pattern(problems, c);
}

VariantConfig layer_variant(const TransformerConfig& config, int64_t layer) {
  std::vector<std::string> names;
  for (const std::string& text : config.pattern) {
    const PatternItem item = *parse_item(text);
    names.insert(names.end(), static_cast<size_t>(item.count), item.name);
  }
  if (names.empty()) return {config.attention, config.position};
  const std::string& name = names[static_cast<size_t>(layer) % names.size()];
  return is_base(name) ? VariantConfig{config.attention, config.position} : config.variants.at(name);
}

}  // namespace quell
