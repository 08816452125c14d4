#include "nn/block.h"

namespace quell {
namespace {

// Declares the parts of one block under its prefix, those that its configuration wants.
struct Parts {
  ParameterList& into;
  std::string prefix;
  int64_t unit;
  const TransformerConfig& model;

  Norm norm_unless(NormPlace place, const std::string& name, bool wanted = true) const {
    return wanted && model.norm.place != place ? Norm(into, prefix + name, unit, model.norm, model.width) : Norm();
  }
  Parameter* scale(const std::string& name, bool wanted = true) const {
    if (!wanted || !model.layer_scale) return nullptr;
    return into.add(prefix + name, Role::scale, unit, {model.width}, Initial::constant(*model.layer_scale));
  }
};

Parts parts_of(ParameterList& into, int64_t layer, int64_t unit, const TransformerConfig& model) {
  return {into, "blocks." + std::to_string(layer) + ".", unit, model};
}

// Grows from 0 at the first block to model.drop_path at the last (stochastic depth, Huang et al. 2016).
double drop_path_of(int64_t layer, const TransformerConfig& model) {
  return model.layers > 1 ? model.drop_path * static_cast<double>(layer) / static_cast<double>(model.layers - 1) : model.drop_path;
}

}  // namespace

// The members' order of declaration is the parameters' order of first use.
Block::Block(ParameterList& into, int64_t layer, int64_t unit, const TransformerConfig& model)
    : layer_(layer),
      parallel_(model.block == BlockKind::parallel),
      dropout_(model.dropout),
      drop_path_(drop_path_of(layer, model)),
      attention_norm_(parts_of(into, layer, unit, model).norm_unless(NormPlace::post, "attention_norm")),
      attention_(into, parts_of(into, layer, unit, model).prefix + "attention", unit, layer, model, layer_variant(model, layer)),
      attention_post_norm_(parts_of(into, layer, unit, model).norm_unless(NormPlace::pre, "attention_post_norm")),
      attention_scale_(parts_of(into, layer, unit, model).scale("attention_scale")),
      mlp_norm_(parts_of(into, layer, unit, model).norm_unless(NormPlace::post, "mlp_norm", !parallel_)),
      mlp_(into, parts_of(into, layer, unit, model).prefix + "mlp", unit, model),
      mlp_post_norm_(parts_of(into, layer, unit, model).norm_unless(NormPlace::pre, "mlp_post_norm", !parallel_)),
      mlp_scale_(parts_of(into, layer, unit, model).scale("mlp_scale", !parallel_)) {}

at::Tensor Block::branch(const Forward& forward, const at::Tensor& y_BTC, const Norm& norm, const Parameter* scale,
                         uint64_t place) const {
  at::Tensor y = norm(y_BTC, forward.kernels);
  if (scale != nullptr) y = (y * scale->compute).to(y.scalar_type());
  y = dropout(forward, y, dropout_, place);
  return drop_path(forward, y, drop_path_, place);
}

at::Tensor Block::operator()(const Forward& forward, const at::Tensor& x_BTC) const {
  const at::Tensor normed = attention_norm_(x_BTC, forward.kernels);
  at::Tensor attended = attention_(forward, normed);
  if (parallel_) attended = attended + mlp_(forward, normed);
  const at::Tensor x = x_BTC + branch(forward, attended, attention_post_norm_, attention_scale_, places::attended(layer_));
  if (parallel_) return x;
  const at::Tensor transformed = mlp_(forward, mlp_norm_(x, forward.kernels));
  return x + branch(forward, transformed, mlp_post_norm_, mlp_scale_, places::transformed(layer_));
}

}  // namespace quell
