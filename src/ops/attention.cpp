// Chooses between flash attention and the explicit path (ops/reference_attention.cpp), which alone has soft-cap and dropout of
// weights. B batch, T position, H query heads, G key/value heads, D head width.
#include "ops/attention.h"

#include <algorithm>

#include "base/error.h"
#include "ops/flash_attention.h"
#include "ops/reference.h"

namespace quell::ops {
namespace {

constexpr int64_t rows_at_once = 64;

bool windowed(const AttentionSpec& spec, int64_t length) { return spec.window && *spec.window < length; }

// Rows [first, first + rows) of visible_pairs.
at::Tensor visible_pairs_of_rows(const AttentionSpec& spec, int64_t length, int64_t first, int64_t rows, at::Device device) {
  const auto integers = at::TensorOptions().dtype(at::kLong).device(device);
  const at::Tensor position = at::arange(length, integers);
  // How far the key lies before the query.
  const at::Tensor behind = position.narrow(0, first, rows).unsqueeze(1) - position.unsqueeze(0);
  at::Tensor visible = spec.causal ? behind >= 0 : at::ones({rows, length}, integers.dtype(at::kBool));
  if (windowed(spec, length)) visible = visible.logical_and(behind.abs() < *spec.window);
  if (spec.documents_BT.defined()) {
    const at::Tensor& document = spec.documents_BT;
    visible = visible.logical_and(document.narrow(1, first, rows).unsqueeze(2) == document.unsqueeze(1)).unsqueeze(1);
  }
  return visible;
}

void require_fitting(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const at::Tensor& v_BTGD, const AttentionSpec& spec) {
  require(q_BTHD.dim() == 4 && k_BTGD.dim() == 4, "attention: q, k and v have four dimensions");
  require(k_BTGD.sizes() == v_BTGD.sizes(), "attention: k and v differ in shape");
  require(q_BTHD.size(0) == k_BTGD.size(0) && q_BTHD.size(1) == k_BTGD.size(1) && q_BTHD.size(3) == k_BTGD.size(3),
          "attention: q and k differ in batch, length or head width");
  require(!spec.documents_BT.defined() || spec.documents_BT.sizes() == q_BTHD.sizes().slice(0, 2),
          "attention: documents are not [B, T]");
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
  } else if (type != at::kFloat && type != at::kBFloat16) {
    why = type == at::kDouble ? "float64" : c10::toString(type);
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
  require_fitting(q_BTHD, k_BTGD, v_BTGD, spec);
  const auto path = attention_path(spec, v_BTGD.scalar_type(), nullptr, v_BTGD.device().type());
  return path == AttentionPath::flash ? flash_attention(q_BTHD, k_BTGD, v_BTGD, spec)
                                      : reference::attention(q_BTHD, k_BTGD, v_BTGD, spec);
}

at::Tensor attention_entropy(const at::Tensor& q_BTHD, const at::Tensor& k_BTGD, const AttentionSpec& spec) {
  require_fitting(q_BTHD, k_BTGD, k_BTGD, spec);
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
  return visible_pairs_of_rows(spec, length, 0, length, device);
}

at::Tensor visible_keys(const AttentionSpec& spec, int64_t length, at::Device device) {
  if (spec.documents_BT.defined()) {
    // A few rows at a time: all of them would be as large as the scores that flash attention never makes.
    std::vector<at::Tensor> counts;
    for (int64_t first = 0; first < length; first += rows_at_once) {
      const int64_t rows = std::min(rows_at_once, length - first);
      counts.push_back(visible_pairs_of_rows(spec, length, first, rows, device).sum(-1));
    }
    return at::cat(counts, -1).to(at::kFloat);
  }
  const int64_t window = windowed(spec, length) ? *spec.window : length;
  const at::Tensor position = at::arange(length, at::TensorOptions().dtype(at::kLong).device(device));
  const at::Tensor before = position.clamp_max(window - 1);
  const at::Tensor after = (length - 1 - position).clamp_max(window - 1);
  return (spec.causal ? before + 1 : before + after + 1).to(at::kFloat);
}

}  // namespace quell::ops
