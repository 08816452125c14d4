#include "nn/tape.h"

#include <utility>

namespace quell {
namespace {

using ops::Sized;
using ops::Tape;

double real(int64_t n) { return static_cast<double>(n); }

// One forward pass of a transformer's blocks. C width, H heads, G key/value heads, D head width, as in the modules.
struct TapedTrunk {
  Tape& tape;
  const TransformerConfig& c;
  const TapedModel& model;
  double batch, length;

  Sized residual_norm(const Sized& x) const {
    return ops::norm(tape, x, real(c.width), c.norm.kind == NormKind::layernorm, c.norm.weight, c.norm.bias);
  }

  Sized qk_norm(const QkNormOptions& o, const Sized& x, int64_t heads) const {
    if (o.kind == NormKind::none) return x;
    const int64_t width = o.axis == NormAxis::projection ? heads * c.head() : c.head();
    return ops::norm(tape, x, real(width), o.kind == NormKind::layernorm && o.center, o.weight != NormWeight::none, o.bias);
  }

  Sized normed_and_rotated(const VariantConfig& block, const Sized& x, int64_t heads) const {
    const QkNormOptions& o = block.attention.qk_norm;
    const auto rotated = [&](const Sized& y) { return block.position.kind == PositionKind::rope ? ops::rotate(tape, y) : y; };
    if (o.axis == NormAxis::projection) return rotated(x);
    if (o.rope == RopeOrder::after) return qk_norm(o, rotated(x), heads);
    return rotated(qk_norm(o, x, heads));
  }

  Sized attention(const VariantConfig& block, const Sized& x) const {
    const double inner = real(c.heads * c.head()), kv_inner = real(c.kv() * c.head()), width = real(c.width);
    const AttentionConfig& a = block.attention;
    Sized q = ops::linear(tape, x, width, inner), k = ops::linear(tape, x, width, kv_inner);
    if (a.qk_norm.axis == NormAxis::projection) {
      q = qk_norm(a.qk_norm, q, c.heads);
      k = qk_norm(a.qk_norm, k, c.kv());
    }
    Sized q_ready = normed_and_rotated(block, q, c.heads);
    if (a.scale.kind == ScaleKind::learned) q_ready = ops::scaled(tape, q_ready);
    const Sized k_ready = normed_and_rotated(block, k, c.kv()), v = ops::linear(tape, x, width, kv_inner);
    q = k = {};
    const ops::SizedAttention shape{batch, length, real(c.heads), real(c.kv()), real(c.head()), a.softcap.has_value(), a.dropout > 0};
    const Sized out = model.explicit_scores(a) ? ops::explicit_attention(tape, q_ready, k_ready, v, shape)
                                               : ops::flash_attention(tape, q_ready, k_ready, v, shape);
    return ops::linear(tape, out, inner, width);
  }

  Sized mlp(const Sized& x) const {
    const double width = real(c.width), hidden = real(c.mlp_width());
    if (is_gated(c.mlp.kind)) {
      const Sized gate = ops::linear(tape, x, width, hidden), up = ops::linear(tape, x, width, hidden);
      return ops::linear(tape, ops::gated(tape, gate, up, c.mlp.kind), hidden, width);
    }
    return ops::linear(tape, ops::activate(tape, ops::linear(tape, x, width, hidden), c.mlp.kind), hidden, width);
  }

  // What becomes of y before it is added: norm, LayerScale, dropout, drop path.
  Sized branch(const Sized& y_BTC, bool drops_path) const {
    Sized y = c.norm.place == NormPlace::pre ? y_BTC : residual_norm(y_BTC);
    if (c.layer_scale) y = ops::scaled(tape, y);
    if (c.dropout > 0) y = ops::dropout(tape, y, false);
    return drops_path ? ops::dropout(tape, y, true) : y;
  }

  Sized block(int64_t layer, const Sized& x) const {
    const bool post = c.norm.place == NormPlace::post, drops_path = c.drop_path > 0 && (layer > 0 || c.layers == 1);
    const Sized normed = post ? x : residual_norm(x);
    Sized attended = attention(layer_variant(c, layer), normed);
    if (c.block == BlockKind::parallel) return ops::add(tape, x, branch(ops::add(tape, attended, mlp(normed)), drops_path));
    const Sized between = ops::add(tape, x, branch(attended, drops_path));
    const Sized transformed = mlp(post ? between : residual_norm(between));
    return ops::add(tape, between, branch(transformed, drops_path));
  }

  Sized operator()(Sized x) const {
    for (int64_t layer = 0; layer < c.layers; ++layer) {
      if (model.first_trained_unit <= layer + 1) tape.begin_training();
      x = block(layer, x);
    }
    tape.begin_training();  // what follows is of the head's unit
    return x;
  }
};

Sized embedded(const TapedTrunk& t, const DecoderConfig& c) {
  const double tokens = t.batch * t.length, width = real(c.width);
  Sized x = ops::embedding(t.tape, tokens, width);
  if (c.embedding.scale) x = ops::elementwise(t.tape, {&x}, x.count, x.bytes(), {});
  if (c.position.kind == PositionKind::learned) x = ops::add(t.tape, x, ops::embedding(t.tape, t.length, width));
  if (c.embedding.norm) x = t.residual_norm(x);
  return c.dropout > 0 ? ops::dropout(t.tape, x, false) : x;
}

Sized embedded(const TapedTrunk& t, const VitConfig& c) {
  const double storage = t.tape.options().storage, values = t.batch * real(c.patches() * c.patch_values());
  Sized patches = t.tape.input(values, values * 4);  // images are fp32
  if (storage != 4) patches = t.tape.input(values, values * storage);
  Sized x = ops::linear(t.tape, patches, real(c.patch_values()), real(c.width));
  patches = {};
  const auto added = [&] { x = ops::elementwise(t.tape, {&x}, x.count, x.bytes(), {.passes = true}); };
  if (c.position.kind == PositionKind::learned || c.position.kind == PositionKind::sincos) added();
  if (c.prefix() > 0) {
    const double count = t.batch * t.length * real(c.width);
    x = ops::elementwise(t.tape, {&x}, count, count * storage, {});
  }
  return c.dropout > 0 ? ops::dropout(t.tape, x, false) : x;
}

// One vector an image. Attention pooling forms products of keys and values with one query's in the exact type and sums them.
Sized pooled(const TapedTrunk& t, const VitConfig& c, const Sized& x) {
  Tape& tape = t.tape;
  const double width = real(c.width), inner = real(c.heads * c.head()), exact = tape.options().exact, storage = tape.options().storage;
  const double count = t.batch * width;
  if (c.pool.kind == PoolKind::token) {  // a view, which keeps all tokens alive and whose gradient is as large as they are
    return tape.record(x.memory, count, {&x}, [&tape, bytes = x.bytes()](const Ledger::Memory&) { return Tape::Gradients{tape.make(bytes)}; });
  }
  if (c.pool.kind != PoolKind::attention) return ops::elementwise(tape, {&x}, count, count * storage, {});
  const Sized patches = c.prefix() == 0 ? x : ops::elementwise(tape, {&x}, t.batch * real(c.patches()) * width, t.batch * real(c.patches()) * width * storage, {});
  Sized k = ops::linear(tape, patches, width, inner);
  if (c.pool.qk_norm) k = t.qk_norm(c.attention.qk_norm, k, c.heads);
  const Sized v = ops::linear(tape, patches, width, inner);
  const Sized wide_k = ops::converted(tape, k, exact), wide_v = ops::converted(tape, v, exact);
  const Sized of_keys = ops::elementwise(tape, {&wide_k}, k.count, k.count * exact, {.saved = {wide_k.memory}});
  const Sized of_values = ops::elementwise(tape, {&wide_v, &of_keys}, v.count, v.count * exact, {.saved = {wide_v.memory}});
  const Sized out = ops::elementwise(tape, {&of_values}, t.batch * inner, t.batch * inner * storage, {});
  const Sized y = ops::linear(tape, out, inner, width);
  return ops::add(tape, y, t.mlp(t.residual_norm(y)));
}

Sized logits(Tape& tape, const DecoderConfig& c, double batch, const TapedModel& model) {
  const TapedTrunk trunk{tape, c, model, batch, real(c.context)};
  const Sized x = trunk.residual_norm(trunk(embedded(trunk, c)));
  return ops::output_logits(tape, x, real(c.width), real(c.vocabulary.value()), model.output_trained);
}

Sized logits(Tape& tape, const VitConfig& c, double batch, const TapedModel& model) {
  const TapedTrunk trunk{tape, c, model, batch, real(c.tokens())};
  const bool before = c.pool.norm == PoolNorm::before;
  Sized x = trunk(embedded(trunk, c));
  if (before) x = trunk.residual_norm(x);
  Sized vectors = pooled(trunk, c, x);
  if (!before) vectors = trunk.residual_norm(vectors);
  return ops::linear(tape, vectors, real(c.width), real(c.classes.value()));
}

}  // namespace

Sized logits_on(Tape& tape, const ModelConfig& config, double batch, const TapedModel& model) {
  if (model.first_trained_unit == 0) tape.begin_training();
  return std::visit([&](const auto& c) { return logits(tape, c, batch, model); }, config);
}

}  // namespace quell
