// Chooses between flash attention and the explicit path (ops/reference_attention.cpp), which alone has soft-cap and dropout of
// weights. B batch, T position, H query heads, G key/value heads, D head width.
#include "ops/attention.h"

#include "base/error.h"
#include "ops/flash_attention.h"
#include "ops/reference.h"

namespace quell::ops {
namespace {

bool windowed(const AttentionSpec& spec, int64_t length) { return spec.window && *spec.window < length; }

void require_fitting(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& v_BTGD) {
  require(q_BTHD.dim() == 4 && k_BTGD.dim() == 4, "attention: q, k and v have four dimensions");
  require(k_BTGD.sizes() == v_BTGD.sizes(), "attention: k and v differ in shape");
  require(q_BTHD.size(0) == k_BTGD.size(0) && q_BTHD.size(1) == k_BTGD.size(1) && q_BTHD.size(3) == k_BTGD.size(3),
          "attention: q and k differ in batch, length or head width");
  require(q_BTHD.size(2) % k_BTGD.size(2) == 0, "attention: the key/value heads do not divide the query heads");
  require(q_BTHD.scalar_type() == v_BTGD.scalar_type() && k_BTGD.scalar_type() == v_BTGD.scalar_type(),
          "attention: q, k and v differ in type");
}

}  // namespace

AttentionPath attention_path(const AttentionSpec& spec, at::ScalarType type, std::string* reason,
                             at::DeviceType device) {
  std::string why;
  if (device != at::kCPU) {
    why = "this device";
  } else if (type == at::kDouble) {
    why = "float64";
  } else if (spec.softcap) {
    why = "soft-cap";
  } else if (spec.dropout > 0) {
    why = "dropout of attention weights";
  }
  if (!why.empty() && spec.kernels == Kernels::fused) {
    throw UsageError("kernels: fused: attention has no fused kernel for " + why + "; use kernels: auto or reference");
  }
  if (spec.kernels == Kernels::reference) why = "kernels: reference";
  if (reason != nullptr) *reason = why;
  return why.empty() ? AttentionPath::flash : AttentionPath::explicit_scores;
}

AttentionResult attention(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& v_BTGD,
                          const AttentionSpec& spec) {
  require_fitting(q_BTHD, k_BTGD, v_BTGD);
  const auto path = attention_path(spec, v_BTGD.scalar_type(), nullptr, v_BTGD.device().type());
  return path == AttentionPath::flash ? flash_attention(q_BTHD, k_BTGD, v_BTGD, spec)
                                      : reference::attention(q_BTHD, k_BTGD, v_BTGD, spec);
}

at::Tensor attention_entropy(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const AttentionSpec& spec) {
  require_fitting(q_BTHD, k_BTGD, k_BTGD);
  at::NoGradGuard no_gradient;
  AttentionSpec measured = spec;
  measured.dropout = 0;
  measured.want_logit_max = false;
  const auto path = attention_path(measured, k_BTGD.scalar_type(), nullptr, k_BTGD.device().type());
  if (path == AttentionPath::explicit_scores) return reference::attention_entropy(q_BTHD, k_BTGD, measured);

  // H = -sum p (s - lse) = lse - scale * q . E[k]. In fp32 for bf16 input: the difference cancels most digits.
  const at::Tensor q = q_BTHD.to(at::kFloat), k = k_BTGD.to(at::kFloat);
  const AttentionResult mean_key = flash_attention(q, k, k, measured);
  const at::Tensor expected_BHT = spec.scale * (q * mean_key.out_BTHD).sum(-1).transpose(1, 2);
  // What rounding may have pushed out of [0, log n] is put back: one visible key is exactly 0.
  const at::Tensor most = visible_keys(spec, q.size(1), q.device()).log();
  return at::minimum((mean_key.lse_BHT - expected_BHT).clamp_min(0), most);
}

at::Tensor visible_pairs(const AttentionSpec& spec, int64_t length, at::Device device) {
  const auto integers = at::TensorOptions().dtype(at::kLong).device(device);
  const at::Tensor position = at::arange(length, integers);
  const at::Tensor behind = position.unsqueeze(1) - position.unsqueeze(0);  // how far the key lies before the query
  at::Tensor visible = spec.causal ? behind >= 0 : at::ones({length, length}, integers.dtype(at::kBool));
  if (windowed(spec, length)) visible = visible.logical_and(behind.abs() < *spec.window);
  if (spec.documents_BT.defined()) {
    const at::Tensor& document = spec.documents_BT;
    visible = visible.logical_and(document.unsqueeze(2) == document.unsqueeze(1)).unsqueeze(1);
  }
  return visible;
}

at::Tensor visible_keys(const AttentionSpec& spec, int64_t length, at::Device device) {
  return visible_pairs(spec, length, device).sum(-1).to(at::kFloat);
}

}  // namespace quell::ops
