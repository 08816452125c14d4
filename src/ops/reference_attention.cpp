// The twin of attention: the score matrix is formed, capped, masked and normalised in plain sight. It is also the path
// that runs where the fused one cannot honour a request. B batch, T position, H query heads, G key/value heads, D head
// width.
#include <limits>

#include "base/error.h"
#include "ops/reference.h"
#include "tensors/fill.h"

namespace quell::ops::reference {
namespace {

// [B, T, G, D] as [B, H, T, D]: query head h reads key/value head h / (H / G).
at::Tensor for_query_heads(const at::Tensor& x_BTGD, int64_t heads) {
  require(heads % x_BTGD.size(2) == 0, "attention: the key/value heads do not divide the query heads");
  const int64_t repeats = heads / x_BTGD.size(2);
  const at::Tensor x_BGTD = x_BTGD.transpose(1, 2);
  return repeats == 1 ? x_BGTD : x_BGTD.repeat_interleave(repeats, 1);
}

at::Tensor widened(const at::Tensor& x) { return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat); }

// Logits, -inf where a key is not seen.
at::Tensor scores(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const AttentionSpec& spec) {
  const int64_t length = q_BTHD.size(1);
  const at::Tensor q_BHTD = widened(q_BTHD).transpose(1, 2);
  const at::Tensor k_BHTD = for_query_heads(widened(k_BTGD), q_BTHD.size(2));
  at::Tensor s_BHTT = at::matmul(q_BHTD, k_BHTD.transpose(2, 3)) * spec.scale;
  if (spec.softcap) s_BHTT = *spec.softcap * at::tanh(s_BHTT / *spec.softcap);
  const at::Tensor visible = visible_pairs(spec, length, q_BTHD.device());
  return s_BHTT.masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity());
}

}  // namespace

AttentionResult attention(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& v_BTGD,
                          const AttentionSpec& spec) {
  const at::Tensor s_BHTT = scores(q_BTHD, k_BTGD, spec);
  at::Tensor weights_BHTT = at::softmax(s_BHTT, -1);
  if (spec.dropout > 0) {
    weights_BHTT = weights_BHTT * dropout_masks(weights_BHTT.detach(), spec.dropout, spec.dropout_key, spec.samples_B);
  }
  const at::Tensor out_BHTD = at::matmul(weights_BHTT, for_query_heads(widened(v_BTGD), q_BTHD.size(2)));

  AttentionResult result;
  result.out_BTHD = out_BHTD.transpose(1, 2).to(v_BTGD.scalar_type());
  result.lse_BHT = at::logsumexp(s_BHTT.detach(), -1);
  if (spec.want_logit_max) result.logit_max_H = s_BHTT.detach().amax({0, 2, 3});
  return result;
}

at::Tensor attention_entropy(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const AttentionSpec& spec) {
  const at::Tensor logs_BHTT = at::log_softmax(scores(q_BTHD, k_BTGD, spec), -1);
  const at::Tensor weights_BHTT = logs_BHTT.exp();
  // 0 log 0 is 0; written out, it would be 0 times infinity.
  return at::where(weights_BHTT > 0, -weights_BHTT * logs_BHTT, weights_BHTT).sum(-1);
}

at::Tensor attention_matrix(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const AttentionSpec& spec) {
  at::NoGradGuard no_gradients;
  return at::softmax(scores(q_BTHD, k_BTGD, spec), -1);
}

at::Tensor attention_weights(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& keys_BT, const AttentionSpec& spec) {
  at::NoGradGuard no_gradients;
  const at::Tensor weights_BHTT = attention_matrix(q_BTHD, k_BTGD, spec);
  const at::Tensor keys_BHT1 = keys_BT.clamp_min(0).unsqueeze(1).unsqueeze(3).expand({-1, q_BTHD.size(2), -1, 1});
  return weights_BHTT.gather(3, keys_BHT1).squeeze(3).masked_fill(keys_BT.lt(0).unsqueeze(1), 0);
}

}  // namespace quell::ops::reference
